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
#include "server/store/maintenance.h"
#include "server/store/retention_rows.h"
#include "server/store/schema.h"
#include "server/store/usage.h"

namespace traind {
namespace {

using sqlite::Connection;
using sqlite::Query;

constexpr int64_t kPageBytes = 4096;

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
  struct stat file = {};
  if (stat(path_.c_str(), &file) == 0 && file.st_size == 0) RETURN_IF_ERROR(db_->AddChecksums());
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
  RETURN_IF_ERROR(
      db_->Execute("PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 67108864; "
                   "PRAGMA cache_size = -16384"));
  synchronous_full_ = true;
  if (options_.max_bytes > 0) {
    RETURN_IF_ERROR(
        db_->Execute(absl::StrCat("PRAGMA max_page_count = ", options_.max_bytes / kPageBytes)));
  }
  RETURN_IF_ERROR(CheckChecksums());
  RETURN_IF_ERROR(Migrate(*db_, Migrations()));
  RETURN_IF_ERROR(ReadMark());
  RETURN_IF_ERROR(OpenMark());
  if (options_.archive != nullptr) log_ = std::make_unique<LogPages>(path_);
  if (!options_.skip_attempts) return Ship();
  Mutations skipped;
  skipped.last_attempt = mark_.last_attempt + kAttemptsAfterACopy;
  skipped.durable = true;
  return Commit(skipped);
}

absl::Status SqliteStore::CheckChecksums() {
  int64_t version = 0;
  {
    Query query = db_->Select("PRAGMA user_version");
    if (query.Next()) query.Read(version);
    RETURN_IF_ERROR(query.status());
  }
  if (version < kVersionWithChecksums) return db_->AddChecksums();
  // Without this, a flipped bit in the header would turn all checks off.
  if (db_->HasChecksums()) return absl::OkStatus();
  return absl::DataLossError("its header says that pages have no checksums");
}

absl::Status SqliteStore::ReadMark() {
  mark_ = HighWater();
  Query query = db_->Select("SELECT last_attempt, revision, chain FROM totals");
  if (query.Next()) query.Read(mark_.last_attempt, mark_.revision, mark_.chain);
  if (mark_.chain.empty()) mark_.chain = std::string(64, '0');
  return query.status();
}

absl::Status SqliteStore::OpenMark() {
  ASSIGN_OR_RETURN(mark_file_, HighWaterFile::Open(MarkPath(path_)));
  const HighWater acknowledged = mark_file_->mark().value_or(mark_);
  const bool behind = acknowledged.revision > mark_.revision;
  if (behind || (acknowledged.revision == mark_.revision && acknowledged.chain != mark_.chain)) {
    if (!options_.accept_loss) {
      return absl::FailedPreconditionError(absl::StrCat(
          "it ends with change ", mark_.revision, ", but ", MarkPath(path_), " says that change ",
          acknowledged.revision, behind ? "" : " was another one, and that it",
          " was acknowledged. Its write-ahead log (", path_,
          "-wal) is lost or damaged, or the database is an older copy. Put the missing files back, "
          "or restore a backup (traind admin restore), or start traind once with --accept-loss, "
          "which gives up what is missing"));
    }
    // Workers may run Attempts that the database has forgotten; their numbers are not used again.
    mark_.revision = acknowledged.revision;
    mark_.last_attempt = std::max(mark_.last_attempt, acknowledged.last_attempt);
    Mutations accepted;
    accepted.durable = true;
    return Commit(accepted);
  }
  return mark_file_->Write(mark_);
}

std::string SqliteStore::MarkPath(const std::string& path) { return absl::StrCat(path, "-mark"); }

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

absl::Status SqliteStore::Ship() {
  if (log_ == nullptr) return absl::OkStatus();
  auto change = log_->ReadNew(db_->log_pages(), db_->HasChecksums());
  // The commit stands, whatever failed here, so no code may say that nothing was stored.
  if (!change.ok()) return absl::InternalError(change.status().message());
  if (change->page_bytes == 0) return absl::OkStatus();
  return options_.archive->Add(*std::move(change));
}

void SqliteStore::BeginBase() {
  // Until the copy is done nothing is moved into the file.
  if (log_ == nullptr || !options_.archive->WantsBase() || db_->log_pages() > 0) return;
  if (database_fd_ < 0) database_fd_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (database_fd_ >= 0) options_.archive->BeginBase(database_fd_);
}

SqliteStore::~SqliteStore() {
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
    if (checking_ != nullptr) checking_->Interrupt();
    idle_readers_.clear();
  }
  if (check_.joinable()) check_.join();
  // It reads the file as it is.
  if (log_ != nullptr) options_.archive->StopCopying();
  if (db_ && Ship().ok()) db_->Checkpoint(/*truncate=*/true).IgnoreError();
  db_.reset();
  if (database_fd_ >= 0) close(database_fd_);
}

absl::Status SqliteStore::CheckpointLog() {
  if (log_ != nullptr) {
    if (options_.archive->copying()) return absl::OkStatus();
    // What is not synced yet would be missing in the archive once the log is written anew.
    RETURN_IF_ERROR(Named(path_, Ship()));
  }
  RETURN_IF_ERROR(Named(path_, db_->Checkpoint(/*truncate=*/false)));
  BeginBase();
  return absl::OkStatus();
}

int64_t SqliteStore::LogBytes() const { return kPageBytes * db_->log_pages(); }

int64_t SqliteStore::HeldLogBytes() const {
  absl::MutexLock lock(&mutex_);
  // The check reads the database for minutes where it is large.
  return checking_ != nullptr ? 0 : kPageBytes * db_->held_pages();
}

// ---- writing ------------------------------------------------------------------

absl::Status SqliteStore::Commit(const Mutations& mutations) {
  if (mutations.empty() && !mutations.durable) return absl::OkStatus();
  RETURN_IF_ERROR(damage());
  if (mutations.durable != synchronous_full_) {
    RETURN_IF_ERROR(db_->Execute(mutations.durable ? "PRAGMA synchronous = FULL"
                                                   : "PRAGMA synchronous = NORMAL"));
    synchronous_full_ = mutations.durable;
  }
  Staged staged;
  absl::Status status = db_->Run("BEGIN IMMEDIATE");
  if (status.ok()) status = Write(mutations, staged);
  const HighWater mark = NextMark(mutations);
  if (status.ok()) status = WriteTotals(mutations, mark);
  if (status.ok()) status = db_->Run("COMMIT");
  if (!status.ok()) {
    if (db_->in_transaction()) db_->Run("ROLLBACK").IgnoreError();
    return Named(path_, status);
  }
  mark_ = mark;
  if (mutations.durable) {
    TellOfFiles(mutations);
    RETURN_IF_ERROR(Named(path_, Ship()));
    RETURN_IF_ERROR(mark_file_->Write(mark_));
  }
  for (auto& [id, written] : staged) {
    if (IsTerminal(written.job->state)) {
      written_.erase(id);
    } else {
      written_[id] = std::move(written);
    }
  }
  return absl::OkStatus();
}

void SqliteStore::TellOfFiles(const Mutations& mutations) const {
  if (options_.archive == nullptr || !options_.before_archive) return;
  std::vector<std::string> jobs;
  for (const Mutations::Event& event : mutations.events) {
    const bool files =
        event.kind == "attempt_ended" || event.kind == "prediction" || event.kind == "state";
    if (files && std::find(jobs.begin(), jobs.end(), event.job) == jobs.end()) {
      jobs.push_back(event.job);
    }
  }
  if (!jobs.empty()) options_.before_archive(jobs);
}

absl::Status SqliteStore::Write(const Mutations& m, Staged& staged) {
  RETURN_IF_ERROR(CheckLastAttempt(mark_.last_attempt, m.last_attempt));
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
    RETURN_IF_ERROR(AppendEvent(*written, event));
  }
  for (const Mutations::Event& remark : m.remarks) {
    const absl::StatusOr<Written*> written = Find(remark.job, staged);
    if (absl::IsNotFound(written.status())) continue;
    RETURN_IF_ERROR(written.status());
    RETURN_IF_ERROR(AppendEvent(**written, remark));
  }
  for (const MetricPoint& point : m.metrics) {
    ASSIGN_OR_RETURN(Written* const written, Find(point.job, staged));
    RETURN_IF_ERROR(AppendMetric(*written, point));
  }
  for (const auto& worker : m.workers) RETURN_IF_ERROR(WriteWorker(worker));
  RETURN_IF_ERROR(WriteQuotas(m));
  if (m.clock_step != absl::ZeroDuration()) RETURN_IF_ERROR(MoveTimes(m.clock_step));
  return WriteRetention(*db_, m);
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
  // Of a Job that begins no row is looked for: its id is a unique column.
  absl::StatusOr<Written*> found = job->version == 1 && staged.count(job->id) == 0
                                       ? absl::NotFoundError("")
                                       : Find(job->id, staged);
  if (!found.ok() && !absl::IsNotFound(found.status())) return found.status();
  std::shared_ptr<const Job> before;
  if (found.ok()) {
    before = (*found)->job;
    RETURN_IF_ERROR(CheckChange(before.get(), *job));
  } else {
    RETURN_IF_ERROR(CheckChange(nullptr, *job));
    Written written;
    written.metrics = 0;
    RETURN_IF_ERROR(InsertJob(*db_, *job, &written.number));
    written.events = EventChain{job->id};
    found = &(staged[job->id] = written);
  }
  Written& written = **found;
  RETURN_IF_ERROR(UpdateJob(*db_, written.number, before.get(), *job));
  written.job = job;
  return absl::OkStatus();
}

absl::Status SqliteStore::AppendEvent(Written& written, const Mutations::Event& event) {
  if (!written.events) {
    ASSIGN_OR_RETURN(written.events, ReadEventChain(*db_, written.number, event.job));
  }
  return WriteEvent(*db_, written.number, event, *written.events);
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
  RETURN_IF_ERROR(
      db_->Run("INSERT INTO workers(id, hostname, last_seen_ms, mode, drain_at_ms, silent_ms) "
               "VALUES(?, ?, ?, ?, ?, ?) "
               "ON CONFLICT(id) DO UPDATE SET hostname = excluded.hostname, "
               "last_seen_ms = excluded.last_seen_ms, mode = excluded.mode, "
               "drain_at_ms = excluded.drain_at_ms, silent_ms = excluded.silent_ms",
               worker.id, worker.hostname, worker.last_seen, static_cast<int>(worker.mode),
               worker.drain_at, worker.silent));
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
      "WHEN deadline_ms IN (spec_deadline_ms, accepted_at_ms + waited_ms + budget_ms) "
      "THEN MIN(CASE WHEN after_json = '[]' THEN COALESCE(accepted_at_ms + waited_ms + ?1 + "
      "budget_ms, 9223372036854775807) ELSE 9223372036854775807 END, "
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
      "UPDATE predictions SET at_ms = at_ms + ?1 "
      "WHERE job IN (SELECT number FROM jobs WHERE state NOT IN (5, 6, 7))",
  };
  for (const char* const statement : kStatements) RETURN_IF_ERROR(db_->Run(statement, step));
  // The Jobs written last are compared with later ones, so they are read again.
  written_.clear();
  return absl::OkStatus();
}

HighWater SqliteStore::NextMark(const Mutations& m) const {
  HighWater next = mark_;
  next.last_attempt = std::max(next.last_attempt, m.last_attempt);
  if (!m.durable) return next;
  ++next.revision;
  // Two copies of a database that go different ways differ here, at least by their times.
  std::string changes = absl::StrCat(mark_.chain, " ", next.revision, " ", next.last_attempt, " ",
                                     m.last_seen ? absl::ToUnixNanos(*m.last_seen) : 0);
  for (const auto& job : m.jobs) absl::StrAppend(&changes, " ", job->id, " ", job->version);
  next.chain = Sha256Hex(changes);
  return next;
}

absl::Status SqliteStore::WriteTotals(const Mutations& m, const HighWater& mark) {
  if (m.last_attempt == 0 && !m.last_seen && !m.awaited && !m.durable) return absl::OkStatus();
  return db_->Run(
      "INSERT INTO totals(one, last_attempt, last_seen_ms, revision, chain, awaited_ms) VALUES(1, "
      "?1, COALESCE(?2, -9223372036854775808), ?3, ?4, COALESCE(?5, 0)) ON CONFLICT(one) DO UPDATE "
      "SET last_attempt = ?1, last_seen_ms = COALESCE(?2, last_seen_ms), revision = ?3, "
      "chain = ?4, awaited_ms = COALESCE(?5, awaited_ms)",
      mark.last_attempt, m.last_seen, mark.revision, mark.chain, m.awaited);
}

absl::StatusOr<std::vector<WorkerNote>> SqliteStore::ReadNotedWorkers() {
  std::vector<WorkerNote> workers;
  Query q = db_->Select(
      "SELECT id, hostname, mode, drain_at_ms, silent_ms FROM workers "
      "WHERE mode != 0 OR silent_ms != 0");
  while (q.Next()) {
    WorkerNote& note = workers.emplace_back();
    int mode = 0;
    q.Read(note.id, note.hostname, mode, note.drain_at, note.silent);
    note.mode = static_cast<WorkerMode>(mode);
  }
  RETURN_IF_ERROR(q.status());
  return workers;
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
  Query q = db_->Select("SELECT last_attempt, last_seen_ms, awaited_ms FROM totals");
  if (q.Next()) q.Read(snapshot.last_attempt, snapshot.last_seen, snapshot.awaited);
  RETURN_IF_ERROR(q.status());
  ASSIGN_OR_RETURN(snapshot.quotas, ReadQuotas(*db_));
  const absl::Time since = UsageStart(snapshot.quotas, snapshot.last_seen);
  ASSIGN_OR_RETURN(snapshot.usage, ReadUsage(*db_, since));
  ASSIGN_OR_RETURN(snapshot.workers, ReadNotedWorkers());
  Query ended = db_->Select(
      "SELECT id FROM jobs WHERE finished_at_ms >= ? AND state IN (5, 6, 7) AND deleting = 0 AND "
      "EXISTS(SELECT 1 FROM attempts WHERE attempts.job = jobs.number) ORDER BY number",
      snapshot.last_seen - kEndedLately);
  while (ended.Next()) ended.Read(snapshot.ended_lately.emplace_back());
  RETURN_IF_ERROR(ended.status());
  return snapshot;
}

}  // namespace traind
