#pragma once

#include <absl/strings/string_view.h>

namespace traind {

// Returns what `protoc --include_source_info --include_imports` writes for proto/job.proto: the
// comments, which generated code lacks.
absl::string_view SpecDescriptors();

}  // namespace traind
