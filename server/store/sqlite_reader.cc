// The reading half of SqliteStore: any thread, each call on a connection of its own.
#include <absl/cleanup/cleanup.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "common/base/status_macros.h"
#include "server/store/job_rows.h"
#include "server/store/job_search.h"
#include "server/store/retention_rows.h"
#include "server/store/spec_text.h"
#include "server/store/sqlite_store.h"

namespace traind {

using sqlite::Connection;
using sqlite::Query;

namespace {

#define TRAIND_OF_REQUEST "WHERE owner = ? AND request_id = ? AND request_id != ''"

absl::StatusOr<std::optional<Job>> JobOfRequest(Connection& db, const RequestKey& request) {
  if (request.request_id.empty()) return std::optional<Job>();
  Query q = db.Select(TRAIND_SELECT_JOBS TRAIND_OF_REQUEST, request.owner, request.request_id);
  ASSIGN_OR_RETURN(std::vector<Job> jobs, ReadSelectedJobs(db, std::move(q), Detail::kWhole));
  if (jobs.empty()) return std::optional<Job>();
  return std::optional<Job>(std::move(jobs[0]));
}

// Adds the Job with this number, unless it is being deleted.
absl::Status AddListing(Connection& db, int64_t number, JobPage& page) {
  ASSIGN_OR_RETURN(
      std::vector<Job> jobs,
      ReadSelectedJobs(
          db, db.Select(TRAIND_SELECT_JOBS "WHERE jobs.number = ? AND deleting = 0", number),
          Detail::kListing));
  for (Job& job : jobs) page.jobs.push_back(std::make_shared<Job>(std::move(job)));
  return absl::OkStatus();
}

}  // namespace

absl::Status SqliteStore::WithReader(const std::function<absl::Status(Connection&)>& read) {
  std::unique_ptr<Connection> db;
  {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(this, &SqliteStore::ReaderFree));
    ++readers_at_work_;
    if (!idle_readers_.empty()) {
      db = std::move(idle_readers_.back());
      idle_readers_.pop_back();
    }
  }
  absl::Cleanup give_back = [&] {
    absl::MutexLock lock(&mutex_);
    --readers_at_work_;
    if (db) idle_readers_.push_back(std::move(db));
  };
  if (!db) {
    ASSIGN_OR_RETURN(db, Connection::Open(path_, Connection::Mode::kReadOnly));
  }
  RETURN_IF_ERROR(db->Run("BEGIN"));
  const absl::Status status = read(*db);
  db->Run("COMMIT").IgnoreError();
  return status;
}

absl::StatusOr<Job> SqliteStore::GetJob(const std::string& id) {
  std::vector<Job> jobs;
  RETURN_IF_ERROR(WithReader([&](Connection& db) -> absl::Status {
    ASSIGN_OR_RETURN(
        jobs,
        ReadSelectedJobs(db, db.Select(TRAIND_SELECT_JOBS "WHERE id = ? AND deleting = 0", id),
                         Detail::kWhole));
    return absl::OkStatus();
  }));
  if (jobs.empty()) return absl::NotFoundError(absl::StrCat("no job ", id));
  return std::move(jobs[0]);
}

absl::StatusOr<JobStamp> SqliteStore::StampOf(const std::string& id) {
  JobStamp stamp;
  bool found = false;
  RETURN_IF_ERROR(WithReader([&](Connection& db) {
    Query q = db.Select(
        "SELECT version, pinned, "
        "(SELECT ifnull(max(sequence), 0) FROM metrics m WHERE m.job = jobs.number) "
        "FROM jobs WHERE id = ? AND deleting = 0",
        id);
    found = q.Next();
    if (found) q.Read(stamp.version, stamp.pinned, stamp.metrics);
    return q.status();
  }));
  if (!found) return absl::NotFoundError(absl::StrCat("no job ", id));
  return stamp;
}

absl::StatusOr<std::vector<std::string>> SqliteStore::FindByName(const std::string& name) {
  std::vector<std::string> ids;
  RETURN_IF_ERROR(WithReader([&](Connection& db) {
    Query q = db.Select(
        "SELECT id FROM jobs WHERE name = ? AND deleting = 0 ORDER BY number DESC LIMIT ?", name,
        kMostNamed);
    while (q.Next()) q.Read(ids.emplace_back());
    return q.status();
  }));
  return ids;
}

absl::StatusOr<Job> SqliteStore::FindByRequest(const std::string& owner,
                                               const std::string& request_id) {
  std::optional<Job> job;
  RETURN_IF_ERROR(WithReader([&](Connection& db) -> absl::Status {
    ASSIGN_OR_RETURN(job, JobOfRequest(db, {owner, request_id}));
    return absl::OkStatus();
  }));
  if (!job) return absl::NotFoundError(absl::StrCat("no request ", request_id));
  return *std::move(job);
}

absl::StatusOr<std::vector<std::optional<KnownRequest>>> SqliteStore::FindRequests(
    const std::vector<RequestKey>& requests) {
  std::vector<std::optional<KnownRequest>> known(requests.size());
  if (requests.empty()) return known;
  RETURN_IF_ERROR(WithReader([&](Connection& db) -> absl::Status {
    for (size_t i = 0; i < requests.size(); ++i) {
      if (requests[i].request_id.empty()) continue;
      Query q = db.Select("SELECT id, asked_sha256 FROM jobs " TRAIND_OF_REQUEST, requests[i].owner,
                          requests[i].request_id);
      if (q.Next()) q.Read(known[i].emplace().id, known[i]->asked_sha256);
      RETURN_IF_ERROR(q.status());
    }
    return absl::OkStatus();
  }));
  return known;
}

absl::StatusOr<KnownSubmit> SqliteStore::FindSubmit(const SubmitKey& submit) {
  KnownSubmit known;
  Query q = db_->Select("SELECT 1 FROM jobs WHERE id = ?", submit.id);
  known.id_is_taken = q.Next();
  RETURN_IF_ERROR(q.status());
  ASSIGN_OR_RETURN(known.job, JobOfRequest(*db_, submit.request));
  return known;
}

std::vector<absl::StatusOr<KnownSubmit>> SqliteStore::FindSubmits(
    const std::vector<SubmitKey>& submits) {
  std::vector<absl::StatusOr<KnownSubmit>> known;
  known.reserve(submits.size());
  // Without it each statement would lock the database anew.
  const absl::Status begun = db_->Run("BEGIN");
  absl::Cleanup end = [this, &begun] {
    if (begun.ok()) db_->Run("COMMIT").IgnoreError();
  };
  for (const SubmitKey& submit : submits) {
    known.push_back(begun.ok() ? FindSubmit(submit) : absl::StatusOr<KnownSubmit>(begun));
  }
  return known;
}

absl::StatusOr<JobPage> SqliteStore::ListAllJobs(const JobFilter& filter, int64_t before) {
  const size_t limit = static_cast<size_t>(std::max(1, filter.limit));
  struct Row {
    int64_t number = 0;
    std::string id;
  };
  JobPage page;
  RETURN_IF_ERROR(WithReader([&](Connection& db) -> absl::Status {
    std::vector<Row> rows;
    rows.reserve(limit + 1);
    Query q = db.Select(
        "SELECT number, id FROM jobs WHERE number < ? AND deleting = 0 "
        "ORDER BY number DESC LIMIT ?",
        before, limit + 1);
    for (Row row; q.Next(); rows.push_back(row)) q.Read(row.number, row.id);
    RETURN_IF_ERROR(q.status());
    if (rows.size() > limit) {
      rows.pop_back();
      page.next_page_token = absl::StrCat(rows.back().number);
    }
    page.jobs.reserve(rows.size());
    for (Row& row : rows) {
      if (auto known = filter.known ? filter.known(row.id) : nullptr; known != nullptr) {
        page.jobs.push_back(std::move(known));
      } else {
        RETURN_IF_ERROR(AddListing(db, row.number, page));
      }
    }
    return absl::OkStatus();
  }));
  return page;
}

absl::StatusOr<JobPage> SqliteStore::ListJobs(const JobFilter& filter) {
  int64_t before = std::numeric_limits<int64_t>::max();
  if (!filter.page_token.empty() && !absl::SimpleAtoi(filter.page_token, &before)) {
    return absl::InvalidArgumentError("page_token was not returned with an earlier page");
  }
  const size_t limit = static_cast<size_t>(std::max(1, filter.limit));
  if (filter.states.empty() && filter.labels.empty()) return ListAllJobs(filter, before);
  JobPage page;
  RETURN_IF_ERROR(WithReader([&](Connection& db) -> absl::Status {
    JobSearch search(db, filter, before);
    while (page.jobs.size() < limit) {
      ASSIGN_OR_RETURN(const int64_t number, search.Next());
      if (number == 0) break;
      if (filter.known) {
        Query q = db.Select("SELECT id FROM jobs WHERE number = ? AND deleting = 0", number);
        std::string id;
        if (q.Next()) q.Read(id);
        RETURN_IF_ERROR(q.status());
        if (id.empty()) continue;
        if (auto known = filter.known(id); known != nullptr) {
          page.jobs.push_back(std::move(known));
          continue;
        }
      }
      RETURN_IF_ERROR(AddListing(db, number, page));
    }
    const int64_t end = search.below();
    bool more = search.interrupted();
    if (page.jobs.size() == limit) {
      ASSIGN_OR_RETURN(const int64_t next, search.Next());
      more = next > 0 || search.interrupted();
    }
    if (more) page.next_page_token = absl::StrCat(end);
    return absl::OkStatus();
  }));
  return page;
}

absl::StatusOr<std::vector<StoredMetric>> SqliteStore::GetMetrics(const std::string& job,
                                                                  int64_t after_sequence, int limit,
                                                                  const std::string& name) {
  std::vector<StoredMetric> metrics;
  RETURN_IF_ERROR(WithReader([&](Connection& db) {
    Query q = db.Select(
        "SELECT sequence, at_ms, fold, attempt, step, epoch, m.name, value FROM metrics m "
        "JOIN jobs ON jobs.number = m.job WHERE jobs.id = ? AND sequence > ? "
        "AND (?3 = '' OR m.name = ?3 OR (?3 LIKE '%:' AND substr(m.name, 1, length(?3)) = ?3)) "
        "ORDER BY sequence LIMIT ?4",
        job, after_sequence, name, limit);
    while (q.Next()) {
      StoredMetric& metric = metrics.emplace_back();
      MetricPoint& p = metric.point;
      p.job = job;
      q.Read(metric.sequence, p.at, p.fold, p.attempt, p.step, p.epoch, p.name, p.value);
    }
    return q.status();
  }));
  return metrics;
}

absl::StatusOr<std::vector<StoredEvent>> SqliteStore::GetEvents(const std::string& job,
                                                                int64_t after_sequence, int limit) {
  std::vector<StoredEvent> events;
  RETURN_IF_ERROR(WithReader([&](Connection& db) -> absl::Status {
    ASSIGN_OR_RETURN(events, ReadEvents(db, job, after_sequence, limit));
    return absl::OkStatus();
  }));
  return events;
}

absl::StatusOr<std::vector<Checkpoint>> SqliteStore::ListCheckpoints(const std::string& job) {
  std::vector<Checkpoint> checkpoints;
  RETURN_IF_ERROR(WithReader([&](Connection& db) {
    Query q = db.Select(
        "SELECT attempt, step, fold, epoch, manifest, sha256, bytes, best_metric, at_ms, seed, "
        "trial "
        "FROM checkpoints c JOIN jobs ON jobs.number = c.job WHERE jobs.id = ? "
        "ORDER BY attempt, step",
        job);
    while (q.Next()) {
      Checkpoint& c = checkpoints.emplace_back();
      q.Read(c.attempt, c.step, c.fold, c.epoch, c.manifest, c.sha256, c.bytes, c.best_metric, c.at,
             c.seed, c.trial);
    }
    return q.status();
  }));
  return checkpoints;
}

absl::StatusOr<std::vector<Answer>> SqliteStore::ListAnswers(const std::string& job) {
  std::vector<Answer> answers;
  RETURN_IF_ERROR(WithReader([&](Connection& db) {
    Query q = db.Select(
        "SELECT p.number, p.at_ms, quality, oof_score, comparable, test_score, "
        "json_array_length(members_json) "
        "FROM predictions p JOIN jobs ON jobs.number = p.job WHERE jobs.id = ? AND deleting = 0 "
        "ORDER BY p.number",
        job);
    while (q.Next()) {
      Answer& a = answers.emplace_back();
      q.Read(a.number, a.at, a.quality, a.oof_score, a.comparable, a.test_score, a.models);
    }
    return q.status();
  }));
  return answers;
}

absl::StatusOr<std::vector<AttemptUsage>> SqliteStore::UsageSince(absl::Time since) {
  std::vector<AttemptUsage> usage;
  RETURN_IF_ERROR(WithReader([&](Connection& db) -> absl::Status {
    ASSIGN_OR_RETURN(usage, ReadUsage(db, since));
    return absl::OkStatus();
  }));
  return usage;
}

absl::StatusOr<bool> SqliteStore::HasOwner(const std::string& owner) {
  bool found = false;
  RETURN_IF_ERROR(WithReader([&](Connection& db) {
    Query q = db.Select("SELECT EXISTS(SELECT 1 FROM jobs WHERE owner = ?)", owner);
    if (q.Next()) q.Read(found);
    return q.status();
  }));
  return found;
}

absl::StatusOr<std::vector<Job>> SqliteStore::FindTrained(const std::string& cache_key,
                                                          const std::string& content_sha256) {
  std::vector<Job> jobs;
  if (cache_key.empty()) return jobs;
  RETURN_IF_ERROR(WithReader([&](Connection& db) -> absl::Status {
    Query q = db.Select(TRAIND_SELECT_JOBS
                        "WHERE cache_key = ? AND content_sha256 = ? AND deleting = 0 "
                        "ORDER BY jobs.number DESC LIMIT ?",
                        cache_key, content_sha256, kMostTrained);
    ASSIGN_OR_RETURN(jobs, ReadSelectedJobs(db, std::move(q), Detail::kWhole));
    return absl::OkStatus();
  }));
  return jobs;
}

absl::StatusOr<Measured> SqliteStore::RecordedSpeed(const std::string& speed_key,
                                                    const std::string& content_sha256,
                                                    int64_t train_bytes) {
  if (speed_key.empty()) return absl::NotFoundError("no such work has been measured yet");
  Measured measured;
  bool found = false;
  const auto read = [&](Query q) {
    if (q.Next()) {
      q.Read(measured.step_s, measured.step_p90_s, measured.evaluate_s, measured.predict_s,
             measured.epoch_s, measured.steps_per_epoch);
      found = true;
    }
    return q.status();
  };
  RETURN_IF_ERROR(WithReader([&](Connection& db) {
    if (!content_sha256.empty()) {
      RETURN_IF_ERROR(read(db.Select(
          "SELECT step_s, step_p90_s, evaluate_s, predict_s, epoch_s, steps_per_epoch "
          "FROM datasets d JOIN jobs ON jobs.number = d.job JOIN tasks t ON t.job = jobs.number "
          "WHERE content_sha256 = ? AND speed_key = ? AND jobs.state = 5 AND t.kind = 2 AND step_s "
          "> 0 "
          "ORDER BY d.job DESC, t.position LIMIT 1",
          content_sha256, speed_key)));
    }
    if (found || train_bytes <= 0) return absl::OkStatus();
    return read(db.Select(
        "SELECT step_s, step_p90_s, evaluate_s, predict_s, epoch_s, steps_per_epoch "
        "FROM jobs JOIN tasks t ON t.job = jobs.number "
        "WHERE train_bytes = ? AND speed_key = ? AND jobs.state = 5 AND t.kind = 2 AND step_s > 0 "
        "ORDER BY jobs.number DESC, t.position LIMIT 1",
        train_bytes, speed_key));
  }));
  if (!found) return absl::NotFoundError("no such work has been measured yet");
  return measured;
}

absl::StatusOr<std::vector<EndedJob>> SqliteStore::ListEnded() {
  std::vector<EndedJob> ended;
  RETURN_IF_ERROR(WithReader([&](Connection& db) -> absl::Status {
    ASSIGN_OR_RETURN(ended, ReadEnded(db));
    return absl::OkStatus();
  }));
  return ended;
}

absl::StatusOr<std::vector<std::string>> SqliteStore::ListDeleting(absl::Time now) {
  std::vector<std::string> ids;
  RETURN_IF_ERROR(WithReader([&](Connection& db) -> absl::Status {
    ASSIGN_OR_RETURN(ids, ReadDeleting(db, now));
    return absl::OkStatus();
  }));
  return ids;
}

absl::StatusOr<absl::Time> SqliteStore::FindDeleted(const std::string& id) {
  absl::Time at = absl::InfiniteFuture();
  RETURN_IF_ERROR(WithReader([&](Connection& db) {
    Query q = db.Select("SELECT at_ms FROM deleted_jobs WHERE id = ?", id);
    if (q.Next()) q.Read(at);
    return q.status();
  }));
  if (at == absl::InfiniteFuture()) {
    return absl::NotFoundError(absl::StrCat("no job ", id, " was deleted"));
  }
  return at;
}

absl::StatusOr<bool> SqliteStore::IsInASpec(const std::string& text) {
  bool found = false;
  RETURN_IF_ERROR(WithReader([&](Connection& db) {
    Query q = db.Select("SELECT spec_json FROM jobs WHERE deleting = 0");
    for (std::string spec; !found && q.Next();) {
      q.Read(spec);
      RETURN_IF_ERROR(UnpackSpec(spec));
      found = absl::StrContains(spec, text);
    }
    return q.status();
  }));
  return found;
}

}  // namespace traind
