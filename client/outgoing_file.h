// Sends the bytes of a file, or of a folder's pack, to traind.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <string>

#include "client/environment.h"
#include "client/training_client.h"
#include "common/base/durable_file.h"
#include "proto/training_service.pb.h"

namespace traind {

// Bytes that traind keeps under their digest.
struct OutgoingFile {
  std::string shown;    // what the user is told of
  std::string name;     // of the file or folder, for its path at traind
  bool folder = false;  // the bytes are the pack of a folder
  std::function<absl::StatusOr<FileDigest>()> digest;
  // Returns `most` bytes from an offset on. Fewer: the file has become shorter.
  std::function<absl::StatusOr<std::string>(int64_t offset, size_t most)> read;
};

// Sends what traind lacks, from where an earlier call stopped, and returns the path there. Tells
// the progress on stderr. Errors: those of reading, and of Upload.
absl::StatusOr<std::string> SendFile(const OutgoingFile& file, TrainingClient& client,
                                     Environment& environment);

}  // namespace traind
