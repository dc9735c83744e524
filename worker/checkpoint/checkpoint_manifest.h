// A checkpoint's fields as JSON, and the manifest that holds them.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "worker/checkpoint/checkpoint.h"

namespace traind {

struct CheckpointManifest {
  Checkpoint fields;               // without slots
  std::vector<std::string> slots;  // their names
  FileDigest tensors;              // of the safetensors file
};

// The text ends with the digest of everything before it.
std::string EncodeManifest(const Checkpoint& checkpoint, const FileDigest& tensors);
// Reads all formats since 1. Errors: DataLoss says what is wrong; `path` appears in the
// message.
absl::StatusOr<CheckpointManifest> DecodeManifest(const std::string& text, const std::string& path);

// The prefix of the names of a slot's tensors. The weights that predict have no prefix, so any
// reader finds the model under the names of its layers.
std::string SlotPrefix(const std::string& slot);

}  // namespace traind
