// Whether bytes are text.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <string>

namespace traind {

// InvalidArgument names the line of the first byte that is not UTF-8, or is zero.
absl::Status CheckUtf8(absl::string_view bytes, const std::string& name);

}  // namespace traind
