// A small table in memory and on disk, for tests.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>

#include "common/data/table/table.h"
#include "common/data/table/table_reader.h"
#include "common/data/table/table_writer.h"

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

// Writes the rows to a file and opens it as a table. On failure the test fails and the result is
// null.
inline std::shared_ptr<const Table> OpenTable(const absl::StatusOr<TableRows>& rows) {
  EXPECT_TRUE(rows.ok()) << rows.status();
  if (!rows.ok()) return nullptr;
  std::string pattern = ::testing::TempDir() + "/table.XXXXXX";
  const std::string dir = mkdtemp(pattern.data());
  EXPECT_TRUE(WriteTable(*rows, dir + "/t").ok());
  auto table = Table::Open(dir + "/t");
  std::filesystem::remove_all(dir);  // the mapping stays valid
  EXPECT_TRUE(table.ok()) << table.status();
  return table.ok() ? *table : nullptr;
}

}  // namespace traind::testing_table
