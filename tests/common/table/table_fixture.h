// A small table in memory and on disk, for tests.
#pragma once

#include <string>

#include "common/table/table_reader.h"

namespace traind::testing_table {

inline absl::StatusOr<TableRows> Read(const std::string& train, const std::string& test = "",
                                      TargetKind kind = TargetKind::kClasses,
                                      const std::string& id = "", const std::string& target = "y") {
  TableSource source;
  source.train = {"train.csv", train};
  if (!test.empty()) source.test = {"test.csv", test};
  source.target = target;
  source.id = id;
  source.target_kind = kind;
  return ReadTable(source);
}

}  // namespace traind::testing_table
