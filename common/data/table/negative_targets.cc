#include "common/data/table/negative_targets.h"

#include <absl/strings/str_cat.h>

#include <numeric>
#include <string>
#include <vector>

namespace traind {
namespace {

// The target's number from 0 on, and the row's place.
std::string NameOf(const TableSchema& schema, size_t target) {
  return absl::StrCat("target '", target == 0 ? schema.target : schema.more_targets[target - 1],
                      "'");
}

std::string PlaceOf(const TableSchema& schema, int32_t row) {
  return absl::StrCat("row ", row + 1, schema.ordered ? " in the order of data.time" : "");
}

absl::Status CheckPositive(const Table& table, absl::string_view place,
                           absl::Span<const int32_t> rows) {
  const TableSchema& schema = table.schema();
  for (size_t k = 0; k < schema.targets(); ++k) {
    const absl::Span<const float> values = table.TargetValue(Split::kTrain, k);
    for (const int32_t row : rows) {
      const float value = values[static_cast<size_t>(row)];
      if (!(value <= 0)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          place, PlaceOf(schema, row), ", ", NameOf(schema, k), ": ", value,
          " has no logarithm, but train.target_transform log takes targets above 0; yeo_johnson "
          "takes all"));
    }
  }
  return absl::OkStatus();
}

std::string FilePlace(absl::string_view path) {
  return absl::StrCat(path.substr(path.rfind('/') + 1), ": ");
}

std::vector<int32_t> AllRows(const Table& table) {
  std::vector<int32_t> all(static_cast<size_t>(table.rows(Split::kTrain)));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

absl::Status Check(const Table& table, absl::string_view loss, absl::string_view place,
                   absl::Span<const int32_t> rows, absl::string_view which) {
  const TableSchema& schema = table.schema();
  for (size_t k = 0; k < schema.targets(); ++k) {
    const std::string name = NameOf(schema, k);
    const absl::Span<const float> values = table.TargetValue(Split::kTrain, k);
    bool some = false;
    for (const int32_t row : rows) {
      const float value = values[static_cast<size_t>(row)];
      if (value < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat(place, PlaceOf(schema, row), ", ", name, ": ", value,
                         " is negative, but train.loss.kind ", loss, " takes targets from 0 on"));
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
  return Check(table, loss, FilePlace(path), AllRows(table), "");
}

absl::Status CheckNoNegativeTargets(const Table& table, absl::string_view loss,
                                    absl::Span<const int32_t> rows) {
  return Check(table, loss, /*place=*/"", rows, " that the fold trains on");
}

absl::Status CheckPositiveTargets(const Table& table, absl::string_view path) {
  return CheckPositive(table, FilePlace(path), AllRows(table));
}

absl::Status CheckPositiveTargets(const Table& table, absl::Span<const int32_t> rows) {
  return CheckPositive(table, /*place=*/"", rows);
}

}  // namespace traind
