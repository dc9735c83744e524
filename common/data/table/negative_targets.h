// The targets that a loss of the logarithm of the mean takes, counts and amounts from 0 on, and
// those that have a logarithm.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstdint>

#include "common/data/table/table.h"

namespace traind {

// InvalidArgument names the first training row with a negative target, or a target that is 0 in
// every row. loss: its name in the spec. path: of the training file, which messages call by its
// last part. REQUIRES: the targets are values.
absl::Status CheckNoNegativeTargets(const Table& table, absl::string_view loss,
                                    absl::string_view path);
// The same of the rows that a fold trains on, where no file is at hand.
absl::Status CheckNoNegativeTargets(const Table& table, absl::string_view loss,
                                    absl::Span<const int32_t> rows);

// InvalidArgument names the first training row with a target that has no logarithm. path: as above.
// REQUIRES: the targets are values.
absl::Status CheckPositiveTargets(const Table& table, absl::string_view path);
// The same of the rows that a fold trains on.
absl::Status CheckPositiveTargets(const Table& table, absl::Span<const int32_t> rows);

}  // namespace traind
