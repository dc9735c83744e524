// What a model has predicted for a file, kept in the Attempt's folder: another Attempt of
// the Job goes on from there.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>

#include "common/publish/dataset_publisher.h"

namespace traind {

// A data file as it was when it was read.
struct FileIdentity {
  uint64_t device = 0, inode = 0;
  int64_t bytes = 0, modified_ns = 0;
  std::string pixels_sha256;  // of its images, which may lie in other files

  bool operator==(const FileIdentity& other) const {
    return device == other.device && inode == other.inode && bytes == other.bytes &&
           modified_ns == other.modified_ns && pixels_sha256 == other.pixels_sha256;
  }
};
absl::StatusOr<FileIdentity> IdentityOf(const std::string& path);

// values-<index>.npy is written; says so, durably, in values-<index>.json.
absl::Status SaveValues(const std::string& dir, int index, const FileIdentity& data,
                        const std::string& sha256, const Member& member);

// What an Attempt of the Job has left of model `index` for the same data, whole. `model_dir`:
// where the model must come from.
std::optional<MemberValues> FindValues(const std::string& state_dir, const std::string& job,
                                       int index, const FileIdentity& data,
                                       const std::string& model_dir);

}  // namespace traind
