#include "common/data/table/negative_targets.h"

#include <absl/strings/str_cat.h>

#include <numeric>
#include <string>
#include <vector>

namespace traind {
namespace {

absl::Status Check(const Table& table, absl::string_view loss, absl::string_view place,
                   absl::Span<const int32_t> rows, absl::string_view which) {
  const TableSchema& schema = table.schema();
  for (size_t k = 0; k < schema.targets(); ++k) {
    const std::string name =
        absl::StrCat("target '", k == 0 ? schema.target : schema.more_targets[k - 1], "'");
    const absl::Span<const float> values = table.TargetValue(Split::kTrain, k);
    bool some = false;
    for (const int32_t row : rows) {
      const float value = values[static_cast<size_t>(row)];
      if (value < 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            place, "row ", row + 1, schema.ordered ? " in the order of data.time" : "", ", ", name,
            ": ", value, " is negative, but train.loss.kind ", loss, " takes targets from 0 on"));
      }
      some |= value > 0;
    }
    if (some) continue;
    return absl::InvalidArgumentError(absl::StrCat(place, name, " is 0 in every row", which,
                                                   ", so train.loss.kind ", loss,
                                                   " has nothing to learn"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckNoNegativeTargets(const Table& table, absl::string_view loss,
                                    absl::string_view path) {
  std::vector<int32_t> all(static_cast<size_t>(table.rows(Split::kTrain)));
  std::iota(all.begin(), all.end(), 0);
  return Check(table, loss, absl::StrCat(path.substr(path.rfind('/') + 1), ": "), all, "");
}

absl::Status CheckNoNegativeTargets(const Table& table, absl::string_view loss,
                                    absl::Span<const int32_t> rows) {
  return Check(table, loss, /*place=*/"", rows, " that the fold trains on");
}

}  // namespace traind
