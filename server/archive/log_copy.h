// The copy of a log of the state folder in the archive's folder, which grows with it.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string>

namespace traind {

// A log that only grows until it becomes the older one and a new one is begun
// (common/base/log_files.h).
struct LogNames {
  std::string name, older;  // without a folder
};

// The copy begins anew with each object, in a file of its own that gets its name once it is
// complete. Where a traind that was succeeded wakes up late and gives that name to its own copy,
// the next CatchUp of its successor begins anew. Threads: one at a time. Errors: those of the
// system, with the path; then the copy begins anew.
class LogCopy {
 public:
  // The log is in the folder `from`, its copy below the same name in the folder `to`.
  LogCopy(const std::string& from, const std::string& to, const LogNames& names);
  ~LogCopy();
  LogCopy(const LogCopy&) = delete;
  LogCopy& operator=(const LogCopy&) = delete;

  // Adds what the log has more than its copy, but no more than so many bytes.
  absl::Status CatchUp(int64_t most_bytes);

 private:
  absl::Status Begin();
  // Takes what it has copied from *most_bytes.
  absl::Status CopyTheRest(int64_t* most_bytes);
  // Gives the copy its name.
  absl::Status Place();
  void Close();

  const std::string log_, copy_, older_copy_;
  int in_ = -1, out_ = -1;  // -1: no copy has begun
  int64_t done_ = 0;        // bytes of the log that the copy has
  bool placed_ = false;     // the copy has its name
  bool follows_ = false;    // the log before has its copy below the name
};

}  // namespace traind
