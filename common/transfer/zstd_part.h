// Parts of files as zstd frames (RFC 8878), where that makes them smaller. Each part is a frame of
// its own, so a transfer may begin at any byte of the file.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <memory>
#include <string>

namespace traind {

// Compresses the parts of one file, one after the other.
// Threads: confined to one.
class PartPacker {
 public:
  PartPacker();
  ~PartPacker();
  PartPacker(const PartPacker&) = delete;
  PartPacker& operator=(const PartPacker&) = delete;

  // Replaces the part by its frame, and returns true, where that saves at least an eighth. After
  // parts that do not become so small it looks at fewer of the next ones, down to every 64th.
  bool Pack(std::string& part);

 private:
  struct Context;
  const std::unique_ptr<Context> context_;
  int passed_ = 0;  // parts that it does not look at before the next one
  int pass_ = 0;    // so many after the next one that does not become smaller
};

// Returns the part of a frame. InvalidArgument: it is no such frame, or has more than 4 MiB.
absl::StatusOr<std::string> UnpackPart(absl::string_view frame);

}  // namespace traind
