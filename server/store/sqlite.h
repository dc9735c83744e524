// SQLite's C interface as C++ values that release their resources.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>

struct sqlite3;
struct sqlite3_stmt;

namespace traind::sqlite {

// Bytes that are no text; they are read into a string.
struct Blob {
  const std::string& bytes;
};

// One execution of a prepared statement. Parameters are bound and columns are read in order. After
// an error, Next() stays false and status() holds the error.
//   Query q = db.Select("SELECT id, state FROM jobs WHERE owner = ?", owner);
//   while (q.Next()) q.Read(id, state);
//   RETURN_IF_ERROR(q.status());
// Values are stored as follows: an infinite Time is NULL (the future) or the smallest integer (the
// past), other Times are milliseconds of Unix time, rounded down; a NaN is NULL; an enum is its
// number.
// Threads: those of its Connection.
class Query {
 public:
  Query(sqlite3* db, sqlite3_stmt* statement, absl::Status status)
      : db_(db), statement_(statement), status_(std::move(status)) {}
  Query(Query&& other) noexcept;
  Query& operator=(Query&&) = delete;
  ~Query();  // resets the statement for its next use

  // Texts are not copied: they must live until the Query is done.
  template <typename... Values>
  void Bind(const Values&... values) {
    (BindOne(values), ...);
  }
  // Returns true if there is a row to read.
  bool Next();
  template <typename... Values>
  void Read(Values&... values) {
    column_ = 0;
    (ReadOne(values), ...);
  }
  // Continues with the columns after those read last.
  template <typename... Values>
  void ReadMore(Values&... values) {
    (ReadOne(values), ...);
  }
  const absl::Status& status() const { return status_; }

 private:
  void BindOne(int64_t value);
  void BindOne(double value);
  void BindOne(const std::string& value);
  void BindOne(const Blob& value);
  void BindOne(absl::Time value);
  void BindOne(absl::Duration value);
  template <typename Value>
  void BindOne(const std::optional<Value>& value) {
    value ? BindOne(*value) : BindNull();
  }
  template <typename Value,
            typename = std::enable_if_t<std::is_integral_v<Value> || std::is_enum_v<Value>>>
  void BindOne(Value value) {
    BindOne(static_cast<int64_t>(value));
  }
  void BindNull();

  bool IsNull() const;
  int64_t ReadInteger();
  void ReadOne(double& value);
  void ReadOne(std::string& value);
  void ReadOne(absl::Time& value);
  void ReadOne(absl::Duration& value);
  template <typename Value>
  void ReadOne(std::optional<Value>& value) {
    if (IsNull()) {
      value.reset();
      ++column_;
    } else {
      ReadOne(value.emplace());
    }
  }
  template <typename Value,
            typename = std::enable_if_t<std::is_integral_v<Value> || std::is_enum_v<Value>>>
  void ReadOne(Value& value) {
    value = static_cast<Value>(ReadInteger());
  }

  sqlite3* db_;
  sqlite3_stmt* statement_;
  int parameter_ = 0;
  int column_ = 0;
  absl::Status status_;
};

// A database connection with a cache of its prepared statements.
// Threads: one at a time. Errors: ResourceExhausted (disk full), DataLoss (damaged, or not a
// database), PermissionDenied (not writable, not readable), Unavailable (busy), Aborted (a
// constraint is violated), else Internal; the text is SQLite's with the system's reason.
class Connection {
 public:
  enum class Mode { kReadWriteCreate, kReadOnly };
  // Applies the settings of all our connections: no automatic checkpoint, not even on close; no
  // trust in the file's schema; foreign keys on.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const std::string& path, Mode mode);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // sql: a literal; its address is the key of the cache.
  template <typename... Values>
  Query Select(const char* sql, const Values&... values) {
    Query query = Prepare(sql);
    query.Bind(values...);
    return query;
  }
  template <typename... Values>
  absl::Status Run(const char* sql, const Values&... values) {
    Query query = Prepare(sql);
    query.Bind(values...);
    while (query.Next()) {
    }
    return query.status();
  }
  Query Prepare(const char* sql);
  // For statements that are built at run time, or several at once.
  absl::Status Execute(const std::string& sql);

  // Makes every page of the database carry a checksum from now on. Rewrites a database whose pages
  // have none, which needs room for a second copy.
  absl::Status AddChecksums();
  // Makes this database a copy of another one, as it is after some commit. REQUIRES: this one is
  // empty.
  absl::Status CopyFrom(Connection& other);
  // Whether the pages have checksums. REQUIRES: something was read from the database.
  bool HasChecksums() const;

  // Ends what the connection does with an error. Threads: any, while the connection lives.
  void Interrupt();

  int64_t last_insert_rowid() const;
  bool in_transaction() const;
  // Whether the file can only be read.
  bool read_only() const;
  // Moves the write-ahead log into the database. truncate: waits for readers, and leaves an empty
  // log.
  absl::Status Checkpoint(bool truncate);
  // Pages in that log after this connection's last commit; 0 once all of them have been moved.
  int log_pages() const { return log_pages_; }
  // Of them, those that the last Checkpoint left, because a reader needs the database without them.
  int held_pages() const { return held_pages_; }

 private:
  explicit Connection(sqlite3* db) : db_(db) {}
  sqlite3* db_;
  int log_pages_ = 0;
  int held_pages_ = 0;
  absl::flat_hash_map<const char*, sqlite3_stmt*> statements_;
};

// Returns the error of `db` for an operation that returned `code`.
absl::Status ErrorStatus(sqlite3* db, int code, absl::string_view what);

}  // namespace traind::sqlite
