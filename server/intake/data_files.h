// Examines a data file at intake: whether it may be read, its header, and whether its first part is
// a table.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/container/flat_hash_map.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>
#include <absl/types/span.h>
#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/data/table/table_text.h"

namespace traind {

struct DataFile {
  std::string path;   // links resolved
  int64_t bytes = 0;  // of a packed or encoded table: about so many when it is unpacked and decoded
  std::vector<std::string> header;
  std::vector<std::string> repeated;  // names of several columns of the file (ReadCsvHeader)
  bool arrays = false;                // NPY, NPZ or Parquet: header is empty
  bool parquet = false;               // Parquet; its plug-in is installed
  bool folder = false;                // header is empty, bytes is 0
  std::string first;                  // for arrays: the first bytes, which tell their shape
};

// Returns "'a', 'b', 'c', 'd', 'e' and 7 more".
std::string SomeOf(absl::Span<const std::string> columns);

// Returns "the training file has no column 'kin'; did you mean 'kind'?", or with the columns that
// there are. which: "training", "test" or "later".
std::string MissingColumn(absl::string_view which, absl::string_view column,
                          const std::vector<std::string>& header);

// Examines files below the data roots. The result is remembered until the file changes (device,
// inode, size, times), so that many Jobs on the same data cost one look.
// Threads: safe.
class DataFiles {
 public:
  // roots: absolute, with links resolved.
  explicit DataFiles(std::vector<std::string> roots) : roots_(std::move(roots)) {}

  // InvalidArgument: a relative path; NotFound; PermissionDenied: outside the roots (also through a
  // link), or not readable; InvalidArgument with row and column: the first 1 MiB is not a table.
  // Messages say what is wrong, but not in which field. folders: folders are accepted too; their
  // content is not examined.
  absl::StatusOr<std::shared_ptr<const DataFile>> Look(const std::string& path,
                                                       bool folders = false)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the first MiB of a file. Errors: those of Look that concern the path.
  absl::StatusOr<std::string> ReadStart(const std::string& path) const;
  // Returns the beginning of a table's text. Errors: those of Look.
  absl::StatusOr<TableStart> ReadTableStart(const std::string& path) const;
  // Returns the real path of a file that is not a table. Errors: those of Look that concern the
  // path.
  absl::StatusOr<std::string> Resolve(const std::string& path) const;

 private:
  struct Identity {
    uint64_t device = 0, inode = 0;
    int64_t bytes = 0, modified_ns = 0, changed_ns = 0;
    bool operator==(const Identity& other) const {
      return device == other.device && inode == other.inode && bytes == other.bytes &&
             modified_ns == other.modified_ns && changed_ns == other.changed_ns;
    }
  };
  static Identity IdentityOf(const struct stat& info);
  struct Seen {
    Identity identity;
    absl::StatusOr<std::shared_ptr<const DataFile>> result;
  };
  absl::StatusOr<std::shared_ptr<const DataFile>> Read(int fd, const std::string& resolved,
                                                       const std::string& name, int64_t bytes);
  // Opens an absolute path whose real path is allowed; sets what it is and its real path. The
  // caller closes the descriptor.
  absl::StatusOr<int> Open(const std::string& path, struct stat& info, std::string& resolved) const;

  static constexpr size_t kMaxSeen = 4096;

  const std::vector<std::string> roots_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Seen> seen_ ABSL_GUARDED_BY(mutex_);  // by requested path
};

}  // namespace traind
