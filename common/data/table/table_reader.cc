#include "common/data/table/table_reader.h"

#include <absl/strings/str_cat.h>

#include "common/base/status_macros.h"
#include "common/data/table/test_file.h"
#include "common/data/table/train_file.h"

namespace traind {
namespace {

// A column can have only one role.
absl::Status CheckRoles(const TableSource& source) {
  struct Role {
    const std::string* column;
    absl::string_view what;
  };
  std::vector<Role> roles = {{&source.target, "the target"}};
  for (const std::string& target : source.more_targets) roles.push_back({&target, "a target"});
  const size_t targets = roles.size();
  for (const Role& role : {Role{&source.time, "the time"}, Role{&source.series, "the series"},
                           Role{&source.group, "the group"}, Role{&source.fold_column, "the fold"},
                           Role{&source.id, "the id"}}) {
    if (!role.column->empty()) roles.push_back(role);
  }
  for (const std::string& text : source.text_columns) roles.push_back({&text, "a text"});
  for (size_t a = 0; a < targets; ++a) {
    for (size_t b = a + 1; b < roles.size(); ++b) {
      if (*roles[a].column != *roles[b].column) continue;
      return absl::InvalidArgumentError(absl::StrCat("column '", *roles[a].column, "' is both ",
                                                     roles[a].what, " and ", roles[b].what));
    }
  }
  if (!source.time.empty() && source.time == source.series) {
    return absl::InvalidArgumentError(
        absl::StrCat("column '", source.time, "' is both the time and the series"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TableRows> ReadTable(const TableSource& source) {
  RETURN_IF_ERROR(CheckRoles(source));
  TableRows rows;
  TrainFile train(source);
  RETURN_IF_ERROR(train.Read(rows.schema.warnings));
  TestFile test(source, train);
  const bool has_test = !source.test.name.empty();
  const absl::Status opened = has_test ? test.Open() : absl::OkStatus();
  if (has_test && opened.ok()) RETURN_IF_ERROR(train.TurnDates(test.DatesToTurn()));
  RETURN_IF_ERROR(train.Finish(rows));
  RETURN_IF_ERROR(opened);
  rows.test.resize(rows.schema.features.size());
  rows.more_test_targets.resize(rows.schema.more_targets.size());
  rows.test_texts.resize(rows.schema.text_columns.size());
  if (has_test) RETURN_IF_ERROR(test.Read(rows));
  return rows;
}

}  // namespace traind
