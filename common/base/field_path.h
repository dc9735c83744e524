// The path of a field in a nested document, as messages name it: "train.optimizer.learning_rate".
#pragma once

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>

#include <string>

namespace traind {

// Returns the path of the field `name` in the section at `path`, which is empty at the top.
inline std::string FieldPath(absl::string_view path, absl::string_view name) {
  return absl::StrCat(path, path.empty() ? "" : ".", name);
}

}  // namespace traind
