#include "server/store/retention_rows.h"

#include <absl/strings/str_cat.h>

#include <cstdint>

#include "common/base/status_macros.h"

namespace traind {
namespace {

using sqlite::Connection;
using sqlite::Query;

// Values of jobs.deleting besides 0.
constexpr int kDeleting = 1;
constexpr int kOnlyUsage = 2;

absl::Status WriteDeletion(Connection& db, const Mutations::Deletion& deletion) {
  int64_t number = 0;
  bool over = false, deleting = false;
  {
    Query q = db.Select("SELECT number, state IN (5, 6, 7), deleting != 0 FROM jobs WHERE id = ?",
                        deletion.job);
    if (q.Next()) q.Read(number, over, deleting);
    RETURN_IF_ERROR(q.status());
  }
  if (number == 0) return absl::NotFoundError(absl::StrCat("no job ", deletion.job));
  if (deleting) return absl::OkStatus();
  if (!over) {
    return absl::AbortedError(absl::StrCat("job ", deletion.job, " is not over; it stays"));
  }
  // The request may be sent again; it then makes another Job.
  RETURN_IF_ERROR(
      db.Run("UPDATE jobs SET deleting = ?, request_id = '' WHERE number = ?", kDeleting, number));
  RETURN_IF_ERROR(db.Run("INSERT OR REPLACE INTO deleted_jobs(id, at_ms) VALUES(?, ?)",
                         deletion.job, deletion.at));
  return db.Run(
      "DELETE FROM deleted_jobs WHERE number <= (SELECT MAX(number) FROM deleted_jobs) - ?",
      kKnownDeleted);
}

// Deletes metrics and events, at most kPurgeRows of each. Returns whether any are left.
absl::StatusOr<bool> ForgetHistory(Connection& db, int64_t job) {
  RETURN_IF_ERROR(
      db.Run("DELETE FROM metrics WHERE job = ?1 AND sequence < "
             "(SELECT MIN(sequence) FROM metrics WHERE job = ?1) + ?2",
             job, kPurgeRows));
  RETURN_IF_ERROR(
      db.Run("DELETE FROM job_events WHERE job = ?1 AND position < "
             "(SELECT MIN(position) FROM job_events WHERE job = ?1) + ?2",
             job, kPurgeRows));
  bool left = false;
  Query q = db.Select(
      "SELECT EXISTS(SELECT 1 FROM metrics WHERE job = ?1) OR "
      "EXISTS(SELECT 1 FROM job_events WHERE job = ?1)",
      job);
  if (q.Next()) q.Read(left);
  RETURN_IF_ERROR(q.status());
  return left;
}

// Returns whether a quota counts Attempts of that Job at `now`.
absl::StatusOr<bool> IsUsageCounted(Connection& db, int64_t job, absl::Time now) {
  bool counted = false;
  Query q = db.Select(
      "SELECT EXISTS(SELECT 1 FROM attempts WHERE job = ? AND kind = 2 AND ended_at_ms > ? - "
      "(SELECT MAX(period_ms) FROM quotas))",
      job, now);
  if (q.Next()) q.Read(counted);
  RETURN_IF_ERROR(q.status());
  return counted;
}

absl::Status Purge(Connection& db, const Mutations::Deletion& purge) {
  int64_t job = 0;
  {
    Query q = db.Select("SELECT number FROM jobs WHERE id = ? AND deleting != 0", purge.job);
    if (q.Next()) q.Read(job);
    RETURN_IF_ERROR(q.status());
  }
  if (job == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const bool history_left, ForgetHistory(db, job));
  if (history_left) return absl::OkStatus();
  RETURN_IF_ERROR(db.Run("DELETE FROM tasks WHERE job = ?", job));
  RETURN_IF_ERROR(db.Run("DELETE FROM checkpoints WHERE job = ?", job));
  RETURN_IF_ERROR(db.Run("DELETE FROM decisions WHERE job = ?", job));
  RETURN_IF_ERROR(db.Run("DELETE FROM plans WHERE job = ?", job));
  RETURN_IF_ERROR(db.Run("DELETE FROM predictions WHERE job = ?", job));
  RETURN_IF_ERROR(db.Run("DELETE FROM artifacts WHERE job = ?", job));
  RETURN_IF_ERROR(db.Run("DELETE FROM datasets WHERE job = ?", job));
  ASSIGN_OR_RETURN(const bool counted, IsUsageCounted(db, job, purge.at));
  if (counted) {
    return db.Run("UPDATE jobs SET deleting = ?, spec_json = '{}', spec_text = '' WHERE number = ?",
                  kOnlyUsage, job);
  }
  RETURN_IF_ERROR(db.Run("DELETE FROM attempts WHERE job = ?", job));
  RETURN_IF_ERROR(db.Run("DELETE FROM job_labels WHERE job = ?", job));
  return db.Run("DELETE FROM jobs WHERE number = ?", job);
}

absl::Status Forget(Connection& db, const std::string& id) {
  int64_t job = 0;
  {
    Query q = db.Select("SELECT number FROM jobs WHERE id = ? AND state IN (5, 6, 7)", id);
    if (q.Next()) q.Read(job);
    RETURN_IF_ERROR(q.status());
  }
  return job == 0 ? absl::OkStatus() : ForgetHistory(db, job).status();
}

}  // namespace

absl::Status WriteRetention(Connection& db, const Mutations& m) {
  for (const auto& deletion : m.deletions) RETURN_IF_ERROR(WriteDeletion(db, deletion));
  for (const auto& purge : m.purges) RETURN_IF_ERROR(Purge(db, purge));
  for (const std::string& job : m.forgotten) RETURN_IF_ERROR(Forget(db, job));
  for (const auto& [job, pinned] : m.pins) {
    RETURN_IF_ERROR(db.Run("UPDATE jobs SET pinned = ? WHERE id = ?", pinned, job));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<EndedJob>> ReadEnded(Connection& db) {
  std::vector<EndedJob> ended;
  Query q = db.Select(
      "SELECT id, COALESCE(finished_at_ms, accepted_at_ms), pinned, "
      "EXISTS(SELECT 1 FROM metrics m WHERE m.job = jobs.number) OR "
      "EXISTS(SELECT 1 FROM job_events e WHERE e.job = jobs.number), "
      "cache_key, COALESCE(table_path, '') FROM jobs "
      "LEFT JOIN datasets ON datasets.job = jobs.number "
      "WHERE state IN (5, 6, 7) AND deleting = 0 ORDER BY 2, jobs.number");
  while (q.Next()) {
    EndedJob& job = ended.emplace_back();
    q.Read(job.id, job.ended_at, job.pinned, job.has_history, job.cache_key, job.table);
  }
  RETURN_IF_ERROR(q.status());
  return ended;
}

absl::StatusOr<std::vector<std::string>> ReadDeleting(Connection& db, absl::Time now) {
  std::vector<std::string> ids;
  Query q = db.Select("SELECT number, id, deleting FROM jobs WHERE deleting != 0 ORDER BY number");
  while (q.Next()) {
    int64_t number = 0;
    int deleting = 0;
    std::string id;
    q.Read(number, id, deleting);
    if (deleting == kOnlyUsage) {
      ASSIGN_OR_RETURN(const bool counted, IsUsageCounted(db, number, now));
      if (counted) continue;
    }
    ids.push_back(std::move(id));
  }
  RETURN_IF_ERROR(q.status());
  return ids;
}

}  // namespace traind
