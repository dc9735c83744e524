// What traind reads of the checkpoints that Ranks write (docs/FORMATS.md, "Checkpoints").
#pragma once

#include <absl/strings/string_view.h>

#include <cstdint>
#include <optional>
#include <string>

#include "common/facts/facts.h"

namespace traind {

// Manifests are checkpoint-<step>.json.
inline constexpr char kCheckpointPrefix[] = "checkpoint-";
inline constexpr char kCheckpointManifest[] = ".json";

// A checkpoint, as its manifest describes it: the fields of facts::CheckpointSaved that stand
// there.
struct ManifestedCheckpoint {
  std::string suffix;  // of the data's file, in place of kCheckpointManifest
  facts::CheckpointSaved saved;
};

// nullopt: the text is no whole manifest.
std::optional<ManifestedCheckpoint> ParseCheckpointManifest(const std::string& text);

// What has to fit a manifest.
enum class DataCheck {
  kSize,    // of the data's file, which is not read
  kDigest,  // of the data, which may take seconds
};

// Returns what the Rank of an Attempt has said, or was about to say, of its newest sound
// checkpoint; nullopt: there is none after the step `after`.
// Threads: safe.
std::optional<facts::CheckpointSaved> FindSavedCheckpoint(const std::string& state_dir,
                                                          const std::string& job, int64_t attempt,
                                                          int64_t after, DataCheck check);

}  // namespace traind
