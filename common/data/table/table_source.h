// The inputs from which a table is made.
#pragma once

#include <string>
#include <vector>

#include "common/data/table/csv_file.h"
#include "common/data/table/table.h"

namespace traind {

struct TableSource {
  CsvFile train;
  CsvFile test;  // without a name: there is none
  std::string target;
  std::vector<std::string> more_targets;  // only with kValue
  std::string id;                         // empty: none
  TargetKind target_kind = TargetKind::kClasses;
  // Columns with a role; empty: none. The time sorts the rows; series names the series of a row;
  // group and fold_column decide the split.
  std::string time, series, group, fold_column;
  // Keeps rows without a target as history of other rows, and allows that there is no feature.
  // REQUIRES: time is set.
  bool history = false;
  // Columns kept as texts (Table::Text), never as features; with one there need not be a feature.
  std::vector<std::string> text_columns;
  // Makes features of columns with many different texts (text_features.h).
  bool text_features = true;
  int threads = 1;  // used for reading; the table does not depend on it
};

}  // namespace traind
