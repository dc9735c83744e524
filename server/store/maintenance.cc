#include "server/store/maintenance.h"

#include <absl/strings/str_cat.h>

#include "common/base/status_macros.h"
#include "server/store/event_rows.h"
#include "server/store/high_water.h"
#include "server/store/sqlite.h"
#include "server/store/sqlite_store.h"

namespace traind {
namespace {

using sqlite::Connection;
using sqlite::Query;

constexpr int kEventsAtOnce = 1000;

absl::Status AddIntegrity(Connection& db, std::vector<std::string>* wrong) {
  for (const char* const check : {"PRAGMA integrity_check(100)",
                                  "SELECT 'a row of ' || \"table\" || ' refers to a row of ' || "
                                  "parent || ' that is not there' FROM pragma_foreign_key_check"}) {
    Query query = db.Select(check);
    while (query.Next()) {
      std::string line;
      query.Read(line);
      if (line != "ok") wrong->push_back(std::move(line));
    }
    RETURN_IF_ERROR(query.status());
  }
  return absl::OkStatus();
}

absl::Status AddChains(Connection& db, std::vector<std::string>* wrong) {
  std::vector<std::string> ids;
  {
    Query query = db.Select("SELECT id FROM jobs WHERE deleting = 0");
    while (query.Next()) query.Read(ids.emplace_back());
    RETURN_IF_ERROR(query.status());
  }
  for (const std::string& id : ids) {
    int64_t after = 0;
    while (true) {
      const auto events = ReadEvents(db, id, after, kEventsAtOnce);
      if (absl::IsDataLoss(events.status())) wrong->emplace_back(events.status().message());
      if (!events.ok() || events->empty()) break;
      after = events->back().sequence;
    }
  }
  return absl::OkStatus();
}

absl::Status AddMark(Connection& db, const std::string& path, std::vector<std::string>* wrong) {
  int64_t revision = 0;
  // The mark comes first: a traind that is at work moves both on.
  const auto mark = HighWaterFile::Read(SqliteStore::MarkPath(path));
  Query query = db.Select("SELECT revision FROM totals");
  if (query.Next()) query.Read(revision);
  RETURN_IF_ERROR(query.status());
  if (!mark.ok()) {
    wrong->emplace_back(mark.status().message());
  } else if (*mark && (*mark)->revision > revision) {
    wrong->push_back(absl::StrCat("the database ends with change ", revision, ", but change ",
                                  (*mark)->revision, " was acknowledged"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CopyDatabase(const std::string& from, const std::string& to) {
  ASSIGN_OR_RETURN(const auto source, Connection::Open(from, Connection::Mode::kReadOnly));
  ASSIGN_OR_RETURN(const auto copy, Connection::Open(to, Connection::Mode::kReadWriteCreate));
  return copy->CopyFrom(*source);
}

absl::StatusOr<std::vector<std::string>> CheckDatabase(const std::string& path) {
  std::vector<std::string> wrong;
  ASSIGN_OR_RETURN(const auto db, Connection::Open(path, Connection::Mode::kReadOnly));
  for (const absl::Status& checked :
       {AddMark(*db, path, &wrong), AddIntegrity(*db, &wrong), AddChains(*db, &wrong)}) {
    if (!checked.ok()) wrong.emplace_back(checked.message());
  }
  return wrong;
}

absl::Status FoldLog(const std::string& path) {
  ASSIGN_OR_RETURN(const auto db, Connection::Open(path, Connection::Mode::kReadWriteCreate));
  std::vector<std::string> wrong;
  std::string checked;
  bool has_marks = false;
  {
    Query query = db->Select("PRAGMA quick_check(1)");
    if (query.Next()) query.Read(checked);
    RETURN_IF_ERROR(query.status());
  }
  if (checked != "ok") return absl::DataLossError(absl::StrCat(path, ": ", checked));
  {
    Query query =
        db->Select("SELECT COUNT(*) FROM pragma_table_info('totals') WHERE name = 'chain'");
    if (query.Next()) query.Read(has_marks);
    RETURN_IF_ERROR(query.status());
  }
  if (has_marks) RETURN_IF_ERROR(AddMark(*db, path, &wrong));
  if (!wrong.empty()) return absl::FailedPreconditionError(absl::StrCat(path, ": ", wrong[0]));
  return db->Checkpoint(/*truncate=*/true);
}

absl::StatusOr<std::vector<StandingFile>> ReadStandingFiles(const std::string& path) {
  ASSIGN_OR_RETURN(const auto db, Connection::Open(path, Connection::Mode::kReadOnly));
  std::vector<StandingFile> files;
  Query query = db->Select(
      "SELECT id, path, sha256 FROM jobs JOIN predictions p ON p.job = jobs.number AND p.number = "
      "prediction_number WHERE deleting = 0 ORDER BY jobs.number");
  while (query.Next()) {
    StandingFile& file = files.emplace_back();
    query.Read(file.job, file.path, file.sha256);
  }
  RETURN_IF_ERROR(query.status());
  return files;
}

absl::Status SkipAttempts(const std::string& path) {
  ASSIGN_OR_RETURN(const auto db, Connection::Open(path, Connection::Mode::kReadWriteCreate));
  RETURN_IF_ERROR(
      db->Run("UPDATE totals SET last_attempt = last_attempt + ?", kAttemptsAfterACopy));
  return db->Checkpoint(/*truncate=*/true);
}

}  // namespace traind
