#include "worker/prepare/class_rows.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/data/table/number.h"

namespace traind {
namespace {

bool IsNumber(const std::string& text) {
  float ignored;
  return ParseNumber(text, ignored) == NumberKind::kNumber;
}

}  // namespace

absl::StatusOr<std::string> CheckClassRows(const Table& table, absl::string_view path) {
  const TableSchema& schema = table.schema();
  if (schema.target_kind != TargetKind::kClasses) return "";
  std::vector<int64_t> rows(schema.classes.size());
  for (const int32_t code : table.TargetClass(Split::kTrain)) ++rows[static_cast<size_t>(code)];
  const auto lone = static_cast<size_t>(std::count(rows.begin(), rows.end(), 1));
  if (lone == 0) return "";
  const std::string target =
      absl::StrCat(path.substr(path.rfind('/') + 1), ": target '", schema.target, "'");
  if (lone == rows.size()) {
    const bool numbers = std::all_of(schema.classes.begin(), schema.classes.end(), IsNumber);
    return absl::InvalidArgumentError(
        absl::StrCat(target, " has ", lone,
                     " classes, each of them in a single row, so no fold can learn the class that "
                     "it validates; ",
                     numbers ? "should task.type be regression?"
                             : "give each class more rows, or name another column by data.target"));
  }
  constexpr size_t kMostNamed = 3;
  std::string named;
  size_t count = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] != 1 || ++count > kMostNamed) continue;
    absl::StrAppend(&named, count == 1 ? "'" : ", '", schema.classes[i].substr(0, 64), "'");
  }
  return absl::StrCat(target, ": ", lone, " of ", rows.size(),
                      lone == 1 ? " classes has a single row: " : " classes have a single row: ",
                      named, lone > kMostNamed ? ", ..." : "",
                      "; the fold that validates it cannot learn its class, so add rows of it, or "
                      "leave it out");
}

}  // namespace traind
