// Writing to a descriptor until all is written.
// Threads: safe.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <string>

namespace traind {

// Goes on after parts and interrupted calls. Errors: by errno, with `path`, which names the file to
// people.
absl::Status WriteAll(int fd, absl::string_view bytes, const std::string& path);

}  // namespace traind
