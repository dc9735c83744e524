#include "server/store/sqlite.h"

#include <absl/strings/str_cat.h>
#include <sqlite3.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>

#include "common/base/status_macros.h"
#include "server/store/checksum_vfs.h"

namespace traind::sqlite {
namespace {

constexpr int64_t kInfinitePast = std::numeric_limits<int64_t>::min();

absl::StatusCode CanonicalCode(int code, int system_errno) {
  switch (code & 0xff) {
    case SQLITE_FULL:
      return absl::StatusCode::kResourceExhausted;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::StatusCode::kDataLoss;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
    case SQLITE_AUTH:
      return absl::StatusCode::kPermissionDenied;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::StatusCode::kUnavailable;
    case SQLITE_CONSTRAINT:
      return absl::StatusCode::kAborted;
    case SQLITE_IOERR:
      if (code == SQLITE_IOERR_DATA) return absl::StatusCode::kDataLoss;  // a checksum
      // After a failed fsync the content of the disk is unknown; after a write that found no space
      // it is known.
      if (code != SQLITE_IOERR_FSYNC && code != SQLITE_IOERR_DIR_FSYNC &&
          (system_errno == ENOSPC || system_errno == EDQUOT)) {
        return absl::StatusCode::kResourceExhausted;
      }
      return absl::StatusCode::kInternal;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::Status ErrorStatus(sqlite3* db, int code, absl::string_view what) {
  std::string text = absl::StrCat(what, ": ", db ? sqlite3_errmsg(db) : sqlite3_errstr(code));
  const int system_errno = db ? sqlite3_system_errno(db) : 0;
  if (const int primary = code & 0xff;
      system_errno != 0 &&
      (primary == SQLITE_IOERR || primary == SQLITE_FULL || primary == SQLITE_CANTOPEN)) {
    absl::StrAppend(&text, " (", std::strerror(system_errno), ")");
  }
  return absl::Status(CanonicalCode(code, system_errno), text);
}

Query::Query(Query&& other) noexcept
    : db_(other.db_),
      statement_(other.statement_),
      parameter_(other.parameter_),
      column_(other.column_),
      status_(std::move(other.status_)) {
  other.statement_ = nullptr;
}

Query::~Query() {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

void Query::BindOne(int64_t value) {
  if (statement_) sqlite3_bind_int64(statement_, ++parameter_, value);
}

void Query::BindOne(double value) {
  if (statement_) sqlite3_bind_double(statement_, ++parameter_, value);
}

void Query::BindOne(const std::string& value) {
  if (statement_ == nullptr) return;
  sqlite3_bind_text64(statement_, ++parameter_, value.data(), value.size(), SQLITE_STATIC,
                      SQLITE_UTF8);
}

void Query::BindOne(const Blob& value) {
  if (statement_ == nullptr) return;
  sqlite3_bind_blob64(statement_, ++parameter_, value.bytes.data(), value.bytes.size(),
                      SQLITE_STATIC);
}

void Query::BindOne(absl::Time value) {
  if (value == absl::InfiniteFuture()) {
    BindNull();
  } else if (value == absl::InfinitePast()) {
    BindOne(kInfinitePast);
  } else {
    BindOne(absl::ToUnixMillis(value));
  }
}

void Query::BindOne(absl::Duration value) { BindOne(absl::ToInt64Milliseconds(value)); }

void Query::BindNull() {
  if (statement_) sqlite3_bind_null(statement_, ++parameter_);
}

bool Query::Next() {
  if (!status_.ok()) return false;
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) status_ = ErrorStatus(db_, code, sqlite3_sql(statement_));
  return false;
}

bool Query::IsNull() const { return sqlite3_column_type(statement_, column_) == SQLITE_NULL; }

int64_t Query::ReadInteger() { return sqlite3_column_int64(statement_, column_++); }

void Query::ReadOne(double& value) {
  value = IsNull() ? std::nan("") : sqlite3_column_double(statement_, column_);
  ++column_;
}

void Query::ReadOne(std::string& value) {
  const auto* text = sqlite3_column_text(statement_, column_);
  const int bytes = sqlite3_column_bytes(statement_, column_);
  ++column_;
  value.assign(text ? reinterpret_cast<const char*>(text) : "", text ? bytes : 0);
}

void Query::ReadOne(absl::Time& value) {
  if (IsNull()) {
    value = absl::InfiniteFuture();
    ++column_;
    return;
  }
  const int64_t ms = ReadInteger();
  value = ms == kInfinitePast ? absl::InfinitePast() : absl::FromUnixMillis(ms);
}

void Query::ReadOne(absl::Duration& value) { value = absl::Milliseconds(ReadInteger()); }

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const std::string& path, Mode mode) {
  sqlite3* db = nullptr;
  const int flags = (mode == Mode::kReadOnly ? SQLITE_OPEN_READONLY
                                             : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) |
                    SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int code = sqlite3_open_v2(path.c_str(), &db, flags, ChecksumVfs());
  std::unique_ptr<Connection> connection(new Connection(db));
  if (code != SQLITE_OK) return ErrorStatus(db, code, absl::StrCat("open ", path));
  sqlite3_busy_timeout(db, 5000);
  sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_FKEY, 1, nullptr);
  sqlite3_wal_autocheckpoint(db, 0);
  sqlite3_wal_hook(
      db,
      [](void* log_pages, sqlite3*, const char*, int pages) {
        *static_cast<int*>(log_pages) = pages;
        return SQLITE_OK;
      },
      &connection->log_pages_);
  RETURN_IF_ERROR(connection->Execute(
      "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY"));
  return connection;
}

Connection::~Connection() {
  for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close_v2(db_);
}

Query Connection::Prepare(const char* sql) {
  sqlite3_stmt*& statement = statements_[sql];
  if (statement == nullptr) {
    const int code =
        sqlite3_prepare_v3(db_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    if (code != SQLITE_OK) return Query(db_, nullptr, ErrorStatus(db_, code, sql));
  }
  return Query(db_, statement, absl::OkStatus());
}

absl::Status Connection::Execute(const std::string& sql) {
  const int code = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : ErrorStatus(db_, code, sql.substr(0, 100));
}

void Connection::Interrupt() { sqlite3_interrupt(db_); }

int64_t Connection::last_insert_rowid() const { return sqlite3_last_insert_rowid(db_); }

bool Connection::in_transaction() const { return sqlite3_get_autocommit(db_) == 0; }

bool Connection::read_only() const { return sqlite3_db_readonly(db_, "main") == 1; }

bool Connection::HasChecksums() const {
  int reserved = -1;  // asks and changes nothing
  sqlite3_file_control(db_, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved);
  return reserved == kChecksumBytes;
}

absl::Status Connection::AddChecksums() {
  RETURN_IF_ERROR(Execute("SELECT COUNT(*) FROM sqlite_master"));
  if (HasChecksums()) return absl::OkStatus();
  int reserved = kChecksumBytes;
  const int code = sqlite3_file_control(db_, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved);
  if (code != SQLITE_OK) return ErrorStatus(db_, code, "reserve room for checksums");
  return Execute("VACUUM");  // rewrites every page; does nothing in an empty database
}

absl::Status Connection::CopyFrom(Connection& other) {
  // Pages are written in their order at the end. The first one comes first and says that they have
  // checksums.
  RETURN_IF_ERROR(Execute("PRAGMA cache_spill = OFF"));
  sqlite3_backup* const backup = sqlite3_backup_init(db_, "main", other.db_, "main");
  if (backup == nullptr) return ErrorStatus(db_, sqlite3_errcode(db_), "copy");
  sqlite3_backup_step(backup, -1);
  const int code = sqlite3_backup_finish(backup);
  return code == SQLITE_OK ? absl::OkStatus() : ErrorStatus(db_, code, "copy");
}

absl::Status Connection::Checkpoint(bool truncate) {
  int pages = 0, moved = 0;
  const int code = sqlite3_wal_checkpoint_v2(
      db_, "main", truncate ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE, &pages,
      &moved);
  if (code == SQLITE_OK && pages == moved) log_pages_ = 0;
  if (pages >= moved && moved >= 0) held_pages_ = pages - moved;
  // Readers may block it: the rest is moved next time.
  if (code == SQLITE_OK || (code & 0xff) == SQLITE_BUSY) return absl::OkStatus();
  return ErrorStatus(db_, code, "checkpoint");
}

}  // namespace traind::sqlite
