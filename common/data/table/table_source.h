// What a table is made of.
#pragma once

#include <absl/strings/string_view.h>

#include <string>
#include <vector>

#include "common/data/table/table.h"

namespace traind {

struct CsvFile {
  std::string name;         // what errors call it
  absl::string_view bytes;  // all of it; kept by the caller
};

struct TableSource {
  CsvFile train;
  CsvFile test;  // without a name: there is none
  std::string target;
  std::vector<std::string> more_targets;  // kValue alone
  std::string id;                         // empty: none
  TargetKind target_kind = TargetKind::kClasses;
  // Columns with a role; empty: none. The time orders the rows; series: which
  // series a row belongs to; group and fold_column decide the split.
  std::string time, series, group, fold_column;
  // Rows without a target stay, as the history of others, and there need be no
  // feature. REQUIRES: time is set.
  bool history = false;
  // Kept as texts (Table::Text), never features; with one there need be no feature.
  std::vector<std::string> text_columns;
  int threads = 1;  // that read; the table does not depend on them
};

}  // namespace traind
