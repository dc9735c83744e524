// A model's predictions for a file, kept in the Attempt's folder so that another Attempt of the
// Job can continue from them.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>

#include "common/publish/dataset_publisher.h"

namespace traind {

// Identifies the contents of a data file at the time it was read.
struct FileIdentity {
  uint64_t device = 0, inode = 0;
  int64_t bytes = 0, modified_ns = 0;
  std::string pixels_sha256;  // of its images, which may be in other files

  bool operator==(const FileIdentity& other) const {
    return device == other.device && inode == other.inode && bytes == other.bytes &&
           modified_ns == other.modified_ns && pixels_sha256 == other.pixels_sha256;
  }
};
absl::StatusOr<FileIdentity> IdentityOf(const std::string& path);

// Records durably, in values-<index>.json, that values-<index>.npy is complete.
absl::Status SaveValues(const std::string& dir, int index, const FileIdentity& data,
                        const std::string& sha256, const Member& member);

// Finds complete values of model `index` for the same data that an Attempt of the Job has left.
// `model_dir`: the folder that the model must come from.
std::optional<MemberValues> FindValues(const std::string& state_dir, const std::string& job,
                                       int index, const FileIdentity& data,
                                       const std::string& model_dir);

}  // namespace traind
