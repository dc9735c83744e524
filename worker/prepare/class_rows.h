// Looks for classes that no fold can learn.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <string>

#include "common/data/table/table.h"

namespace traind {

// Returns a warning of the classes that a single training row has, "" if there are none.
// InvalidArgument: no class has two rows. path: of the training file, which messages call by its
// last part.
absl::StatusOr<std::string> CheckClassRows(const Table& table, absl::string_view path);

}  // namespace traind
