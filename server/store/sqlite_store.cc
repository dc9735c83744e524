#include "server/store/sqlite_store.h"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "server/store/commit_checks.h"
#include "server/store/job_rows.h"
#include "server/store/retention_rows.h"
#include "server/store/schema.h"
#include "server/store/usage.h"

namespace traind {
namespace {

using sqlite::Connection;
using sqlite::Query;

absl::Status Named(const std::string& path, const absl::Status& status) {
  if (status.ok()) return status;
  std::string advice;
  if (absl::IsDataLoss(status)) {
    advice = "; the file is damaged, or is not a database: restore a copy, or move it away";
  } else if (absl::IsPermissionDenied(status)) {
    advice = "; traind must be able to write this file and its folder";
  }
  return absl::Status(status.code(),
                      absl::StrCat("database ", path, ": ", status.message(), advice));
}

// Creates the file so that nobody else may read it: SQLite would use the umask.
absl::Status CreatePrivate(const std::string& path) {
  const int fd = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) return errno == EEXIST ? absl::OkStatus() : ErrnoStatus(errno, "create");
  close(fd);
  return absl::OkStatus();
}

absl::Status CheckIntegrity(Connection& db) {
  Query query = db.Select("PRAGMA quick_check(1)");
  std::string result;
  if (query.Next()) query.Read(result);
  RETURN_IF_ERROR(query.status());
  return result == "ok" ? absl::OkStatus() : absl::DataLossError(result);
}

}  // namespace

SqliteStore::SqliteStore(std::string path, SqliteStoreOptions options)
    : path_(std::move(path)), options_(options) {}

absl::StatusOr<std::unique_ptr<SqliteStore>> SqliteStore::Open(const std::string& path,
                                                               SqliteStoreOptions options) {
  std::unique_ptr<SqliteStore> store(new SqliteStore(path, options));
  struct stat file = {};
  const bool small =
      stat(path.c_str(), &file) != 0 || file.st_size <= options.most_bytes_checked_at_start;
  if (small && file.st_size > 0) {
    // A log that was left behind is part of the database, so the connection may write.
    const auto db = Connection::Open(path, Connection::Mode::kReadWriteCreate);
    RETURN_IF_ERROR(Named(path, db.ok() ? CheckIntegrity(**db) : db.status()));
  }
  RETURN_IF_ERROR(Named(path, store->OpenWriter()));
  if (!small) store->check_ = std::thread([raw = store.get()] { raw->CheckInBackground(); });
  return store;
}

absl::Status SqliteStore::OpenWriter() {
  RETURN_IF_ERROR(CreatePrivate(path_));
  ASSIGN_OR_RETURN(db_, Connection::Open(path_, Connection::Mode::kReadWriteCreate));
  if (db_->read_only() || access(path_.c_str(), W_OK) != 0) {
    return absl::PermissionDeniedError("the file is not writable");
  }
  std::string mode;
  {
    Query query = db_->Select("PRAGMA journal_mode = WAL");
    if (query.Next()) query.Read(mode);
    RETURN_IF_ERROR(query.status());
  }
  if (mode != "wal") {
    return absl::FailedPreconditionError(
        absl::StrCat("no write-ahead log is possible there (journal mode stays ", mode,
                     "): the state folder must be on a local file system"));
  }
  RETURN_IF_ERROR(db_->Execute("PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 67108864"));
  synchronous_full_ = true;
  if (options_.max_bytes > 0) {
    RETURN_IF_ERROR(
        db_->Execute(absl::StrCat("PRAGMA max_page_count = ", options_.max_bytes / 4096)));
  }
  RETURN_IF_ERROR(Migrate(*db_, Migrations()));
  Query query = db_->Select("SELECT last_attempt FROM totals");
  if (query.Next()) query.Read(last_attempt_);
  return query.status();
}

void SqliteStore::CheckInBackground() {
  auto db = Connection::Open(path_, Connection::Mode::kReadOnly);
  if (!db.ok()) return;
  {
    absl::MutexLock lock(&mutex_);
    if (closing_) return;
    checking_ = db->get();
  }
  const absl::Status status = CheckIntegrity(**db);
  absl::MutexLock lock(&mutex_);
  checking_ = nullptr;
  if (absl::IsDataLoss(status)) damage_ = Named(path_, status);
}

absl::Status SqliteStore::damage() const {
  absl::MutexLock lock(&mutex_);
  return damage_;
}

SqliteStore::~SqliteStore() {
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
    if (checking_ != nullptr) checking_->Interrupt();
    idle_readers_.clear();
  }
  if (check_.joinable()) check_.join();
  if (db_) db_->Checkpoint(/*truncate=*/true).IgnoreError();
}

absl::Status SqliteStore::Reopen() {
  {
    absl::MutexLock lock(&mutex_);
    ++generation_;
    idle_readers_.clear();
  }
  written_.clear();
  db_.reset();
  return Named(path_, OpenWriter());
}

absl::Status SqliteStore::CheckpointLog() {
  return Named(path_, db_->Checkpoint(/*truncate=*/false));
}

int64_t SqliteStore::LogBytes() const { return int64_t{4096} * db_->log_pages(); }

// ---- writing ------------------------------------------------------------------

absl::Status SqliteStore::Commit(const Mutations& mutations) {
  if (mutations.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(damage());
  if (mutations.durable != synchronous_full_) {
    RETURN_IF_ERROR(db_->Execute(mutations.durable ? "PRAGMA synchronous = FULL"
                                                   : "PRAGMA synchronous = NORMAL"));
    synchronous_full_ = mutations.durable;
  }
  Staged staged;
  absl::Status status = db_->Run("BEGIN IMMEDIATE");
  if (status.ok()) status = Write(mutations, staged);
  if (status.ok()) status = db_->Run("COMMIT");
  if (!status.ok()) {
    if (db_->in_transaction()) db_->Run("ROLLBACK").IgnoreError();
    return Named(path_, status);
  }
  if (mutations.last_attempt > 0) last_attempt_ = mutations.last_attempt;
  for (auto& [id, written] : staged) {
    if (IsTerminal(written.job->state)) {
      written_.erase(id);
    } else {
      written_[id] = std::move(written);
    }
  }
  return absl::OkStatus();
}

absl::Status SqliteStore::Write(const Mutations& m, Staged& staged) {
  RETURN_IF_ERROR(CheckLastAttempt(last_attempt_, m.last_attempt));
  // Fences come first: they compare with the Attempts that were current before this turn.
  for (const auto& [id, checkpoint] : m.checkpoints) {
    ASSIGN_OR_RETURN(Written* const written, Find(id, staged));
    const auto after = std::find_if(m.jobs.rbegin(), m.jobs.rend(),
                                    [&id = id](const auto& job) { return job->id == id; });
    RETURN_IF_ERROR(CheckCheckpoint(written->job.get(),
                                    after == m.jobs.rend() ? nullptr : after->get(), checkpoint));
    RETURN_IF_ERROR(WriteCheckpoint(*db_, written->number, checkpoint));
  }
  for (const auto& job : m.jobs) RETURN_IF_ERROR(WriteJob(job, staged));
  for (const Mutations::Event& event : m.events) {
    ASSIGN_OR_RETURN(Written* const written, Find(event.job, staged));
    RETURN_IF_ERROR(AppendEvent(*written, event.at, event.kind, event.detail));
  }
  for (const MetricPoint& point : m.metrics) {
    ASSIGN_OR_RETURN(Written* const written, Find(point.job, staged));
    RETURN_IF_ERROR(AppendMetric(*written, point));
  }
  for (const auto& worker : m.workers) RETURN_IF_ERROR(WriteWorker(worker));
  RETURN_IF_ERROR(WriteQuotas(m));
  if (m.clock_step != absl::ZeroDuration()) RETURN_IF_ERROR(MoveTimes(m.clock_step));
  RETURN_IF_ERROR(WriteRetention(*db_, m));
  return WriteTotals(m);
}

absl::StatusOr<SqliteStore::Written*> SqliteStore::Find(const std::string& id, Staged& staged) {
  if (const auto found = staged.find(id); found != staged.end()) return &found->second;
  if (const auto found = written_.find(id); found != written_.end()) {
    return &(staged[id] = found->second);
  }
  std::vector<int64_t> numbers;
  ASSIGN_OR_RETURN(std::vector<Job> jobs,
                   ReadSelectedJobs(*db_, db_->Select(TRAIND_SELECT_JOBS "WHERE id = ?", id),
                                    Detail::kWhole, &numbers));
  if (jobs.empty()) return absl::NotFoundError(absl::StrCat("no job ", id));
  Written& written = staged[id];
  written.job = std::make_shared<const Job>(std::move(jobs[0]));
  written.number = numbers[0];
  return &written;
}

absl::Status SqliteStore::WriteJob(const std::shared_ptr<const Job>& job, Staged& staged) {
  absl::StatusOr<Written*> found = Find(job->id, staged);
  if (!found.ok() && !absl::IsNotFound(found.status())) return found.status();
  std::shared_ptr<const Job> before;
  if (found.ok()) {
    before = (*found)->job;
    RETURN_IF_ERROR(CheckChange(before.get(), *job));
  } else {
    RETURN_IF_ERROR(CheckChange(nullptr, *job));
    Written written;
    written.events = written.metrics = 0;
    RETURN_IF_ERROR(InsertJob(*db_, *job, &written.number));
    found = &(staged[job->id] = written);
  }
  Written& written = **found;
  RETURN_IF_ERROR(UpdateJob(*db_, written.number, before.get(), *job));
  written.job = job;
  return absl::OkStatus();
}

absl::Status SqliteStore::AppendEvent(Written& written, absl::Time at, const std::string& kind,
                                      const std::string& detail) {
  if (written.events < 0) {
    Query q = db_->Select("SELECT COUNT(*) FROM job_events WHERE job = ?", written.number);
    if (q.Next()) q.Read(written.events);
    RETURN_IF_ERROR(q.status());
  }
  return db_->Run(
      "INSERT INTO job_events(job, position, at_ms, kind, detail) VALUES(?, ?, ?, ?, ?)",
      written.number, written.events++, at, kind, detail);
}

absl::Status SqliteStore::AppendMetric(Written& written, const MetricPoint& p) {
  if (written.metrics < 0) {
    Query q =
        db_->Select("SELECT COALESCE(MAX(sequence), 0) FROM metrics WHERE job = ?", written.number);
    if (q.Next()) q.Read(written.metrics);
    RETURN_IF_ERROR(q.status());
  }
  return db_->Run(
      "INSERT INTO metrics(job, sequence, at_ms, fold, attempt, step, epoch, name, value) "
      "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)",
      written.number, ++written.metrics, p.at, p.fold, p.attempt, p.step, p.epoch, p.name, p.value);
}

absl::Status SqliteStore::WriteWorker(const Mutations::WorkerRow& worker) {
  RETURN_IF_ERROR(db_->Run(
      "INSERT INTO workers(id, hostname, last_seen_ms) VALUES(?, ?, ?) ON CONFLICT(id) DO UPDATE "
      "SET hostname = excluded.hostname, last_seen_ms = excluded.last_seen_ms",
      worker.id, worker.hostname, worker.last_seen));
  if (worker.slots.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(db_->Run("DELETE FROM devices WHERE worker = ?", worker.id));
  for (const Slot& slot : worker.slots) {
    RETURN_IF_ERROR(
        db_->Run("INSERT OR REPLACE INTO devices(worker, slot, device, name, uuid, memory_bytes) "
                 "VALUES(?, ?, ?, ?, ?, ?)",
                 worker.id, slot.index, slot.device, slot.name, slot.uuid, slot.memory_bytes));
  }
  return absl::OkStatus();
}

absl::Status SqliteStore::WriteQuotas(const Mutations& m) {
  for (const Quota& q : m.quotas) {
    RETURN_IF_ERROR(
        db_->Run("INSERT OR REPLACE INTO quotas(owner, label, allowance_ms, period_ms, rolling, "
                 "since_ms) VALUES(?, ?, ?, ?, ?, ?)",
                 q.subject.owner, q.subject.label, q.allowance, q.period, q.rolling, q.since));
  }
  for (const QuotaSubject& subject : m.removed_quotas) {
    RETURN_IF_ERROR(
        db_->Run("DELETE FROM quotas WHERE owner = ? AND label = ?", subject.owner, subject.label));
  }
  return absl::OkStatus();
}

absl::Status SqliteStore::MoveTimes(absl::Duration step) {
  // Deadlines go first, because they are compared with the time of acceptance before the step.
  constexpr const char* kStatements[] = {
      "UPDATE jobs SET deadline_ms = CASE "
      "WHEN deadline_ms IN (spec_deadline_ms, accepted_at_ms + budget_ms) "
      "THEN MIN(COALESCE(accepted_at_ms + ?1 + budget_ms, 9223372036854775807), "
      "COALESCE(spec_deadline_ms, 9223372036854775807)) "
      "ELSE deadline_ms + ?1 END WHERE state NOT IN (5, 6, 7)",
      "UPDATE jobs SET accepted_at_ms = accepted_at_ms + ?1, started_at_ms = started_at_ms + ?1 "
      "WHERE state NOT IN (5, 6, 7)",
      "UPDATE tasks SET not_before_ms = not_before_ms + ?1 WHERE not_before_ms > "
      "-9223372036854775808 AND job IN (SELECT number FROM jobs WHERE state NOT IN (5, 6, 7))",
      "UPDATE attempts SET started_at_ms = started_at_ms + ?1, ended_at_ms = ended_at_ms + ?1 "
      "WHERE job IN (SELECT number FROM jobs WHERE state NOT IN (5, 6, 7))",
      "UPDATE plans SET at_ms = at_ms + ?1 "
      "WHERE job IN (SELECT number FROM jobs WHERE state NOT IN (5, 6, 7))",
      "UPDATE decisions SET at_ms = at_ms + ?1 "
      "WHERE job IN (SELECT number FROM jobs WHERE state NOT IN (5, 6, 7))",
  };
  for (const char* const statement : kStatements) RETURN_IF_ERROR(db_->Run(statement, step));
  // The Jobs written last are compared with later ones, so they are read again.
  written_.clear();
  return absl::OkStatus();
}

absl::Status SqliteStore::WriteTotals(const Mutations& m) {
  if (m.last_attempt == 0 && !m.last_seen) return absl::OkStatus();
  return db_->Run(
      "INSERT INTO totals(one, last_attempt, last_seen_ms) VALUES(1, ?1, COALESCE(?2, "
      "-9223372036854775808)) ON CONFLICT(one) DO UPDATE SET "
      "last_attempt = MAX(last_attempt, ?1), last_seen_ms = COALESCE(?2, last_seen_ms)",
      m.last_attempt, m.last_seen);
}

absl::StatusOr<Snapshot> SqliteStore::LoadSnapshot() {
  Snapshot snapshot;
  // Jobs are not kept here but read again with their first change, so that a long queue is not held
  // in memory twice.
  written_.clear();
  RETURN_IF_ERROR(db_->Run("BEGIN"));
  absl::Cleanup end = [this] { db_->Run("COMMIT").IgnoreError(); };
  ASSIGN_OR_RETURN(
      snapshot.active,
      ReadSelectedJobs(
          *db_, db_->Select(TRAIND_SELECT_JOBS "WHERE state NOT IN (5, 6, 7) ORDER BY jobs.number"),
          Detail::kWhole));
  Query q = db_->Select("SELECT last_attempt, last_seen_ms FROM totals");
  if (q.Next()) q.Read(snapshot.last_attempt, snapshot.last_seen);
  RETURN_IF_ERROR(q.status());
  ASSIGN_OR_RETURN(snapshot.quotas, ReadQuotas(*db_));
  if (!snapshot.quotas.empty()) {
    const absl::Time since = UsageStart(snapshot.quotas, snapshot.last_seen);
    ASSIGN_OR_RETURN(snapshot.usage, ReadUsage(*db_, since));
  }
  return snapshot;
}

}  // namespace traind
