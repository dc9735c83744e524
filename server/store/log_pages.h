// Reads what commits have added to a write-ahead log.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

#include "server/archive/archive.h"

namespace traind {

// Threads: that of the database's only writer, which alone empties the log. Errors: DataLoss (the
// log is not what the writer has written), those of the system.
class LogPages {
 public:
  // path: of the database. Its log is empty now, or does not exist.
  explicit LogPages(const std::string& path) : path_(path + "-wal") {}
  ~LogPages();
  LogPages(const LogPages&) = delete;
  LogPages& operator=(const LogPages&) = delete;

  // Returns the pages that commits have changed since the last call, as they will stand in the
  // database file, each once. frames: how many the log has after the last commit.
  // checksums: the pages have room for checksums, which are added.
  // REQUIRES: it is called before the log is emptied and written anew.
  absl::StatusOr<ChangedPages> ReadNew(int frames, bool checksums);

 private:
  struct Salts {
    uint32_t first = 0, second = 0;
    bool operator==(const Salts& other) const {
      return first == other.first && second == other.second;
    }
  };

  const std::string path_;
  int fd_ = -1;
  Salts salts_;   // of the log that was read last; each time it begins anew it has others
  int read_ = 0;  // frames of it
};

}  // namespace traind
