// A checkpoint's fields as JSON, and the manifest that they stand in.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "worker/checkpoint/checkpoint.h"

namespace traind {

struct CheckpointManifest {
  Checkpoint fields;               // no slots
  std::vector<std::string> slots;  // their names
  FileDigest tensors;              // of the safetensors file
};

// Ends in the digest of all before it.
std::string EncodeManifest(const Checkpoint& checkpoint, const FileDigest& tensors);
// Reads every format from 1 on. Errors: DataLoss says what is wrong; `path` is for it.
absl::StatusOr<CheckpointManifest> DecodeManifest(const std::string& text, const std::string& path);

// Prefix of a slot's tensors. A plain name holds the weights that predict, so that any
// reader finds the model under the names that its layers have.
std::string SlotPrefix(const std::string& slot);

}  // namespace traind
