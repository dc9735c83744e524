// The trials of a Job as people read them.
#pragma once

#include <absl/strings/string_view.h>

#include <vector>

#include "proto/job.pb.h"

namespace traind {

// Returns the trials of a resolved spec, with the settings that tell them apart. Empty: the spec
// has none, or cannot be read. Threads: safe.
std::vector<v1::Trial> TrialsOf(absl::string_view spec_json);

}  // namespace traind
