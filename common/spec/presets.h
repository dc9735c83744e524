// Presets: names for settings that fill what a spec leaves unset. What a version of
// one stands for never changes. docs/design/presets.md lists the versions.
// Threads: safe.
#pragma once

#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <string>
#include <vector>

#include "proto/job.pb.h"

namespace traind {

struct PresetField {
  absl::string_view path;   // "train.epochs"
  absl::string_view value;  // as YAML would write it
};

// "fast" -> "fast@1", its newest version; a name with its version stays; an unknown one is empty.
std::string PinnedPreset(absl::string_view preset);

// Returns the fields of a pinned preset; empty: it is unknown.
absl::Span<const PresetField> PresetFields(absl::string_view pinned);

// Fills the fields that spec.preset stands for and the spec leaves unset, those of a
// model only where it is the spec's; pins the preset. The fields that were filled:
// "train.epochs: 12". Nothing without a preset. REQUIRES: CheckSpec(spec) is empty.
std::vector<std::string> ApplyPreset(v1::JobSpec& spec);

}  // namespace traind
