// Reads the test file into a table.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/data/table/csv.h"
#include "common/data/table/row_order.h"
#include "common/data/table/table_source.h"
#include "common/data/table/table_writer.h"
#include "common/data/table/target_column.h"
#include "common/data/table/train_file.h"

namespace traind {

// Matches the test file's columns with the training file's and reads its rows.
// Threads: confined to one.
class TestFile {
 public:
  // `train` outlives this object.
  TestFile(const TableSource& source, const TrainFile& train) : source_(source), train_(train) {}

  // Reads the header. Call this before the other functions.
  absl::Status Open();
  // Returns the columns of dates whose test rows tell another order of day and month than that in
  // which the training file was read, where its own rows leave the order open. REQUIRES: `train`
  // was read, and not yet finished.
  std::vector<std::string> DatesToTurn() const;
  // Adds the test rows to `rows`. REQUIRES: `train` was finished.
  absl::Status Read(TableRows& rows);

 private:
  absl::Status MatchColumns(TableRows& rows);
  absl::Status MatchRoles();
  absl::Status AddBlock(const CsvRows& block, TableRows& rows);
  absl::Status OrderByTime(TableRows& rows);
  void WarnOfDoubledIds(TableRows& rows) const;
  void WarnOfStepsBehind(const RowOrderSource& source, const RowOrder& order,
                         TableRows& rows) const;
  absl::Status CheckFollows(const TableRows& rows, const RowOrder& order,
                            const RowOrderSource& ordered) const;

  const TableSource& source_;
  const TrainFile& train_;
  TableFileHeader header_;
  std::vector<std::string> header_warnings_;
  std::vector<size_t> feature_at_;  // [feature]: its column in this file
  std::vector<ptrdiff_t> target_at_;
  std::vector<size_t> text_at_;
  std::vector<TestTarget> targets_;
  ptrdiff_t id_at_ = kAbsent, time_at_ = kAbsent, series_at_ = kAbsent;
  std::vector<StrayTexts> strays_;  // [feature]
  TimeColumn times_;
  ColumnValues series_;  // as texts
};

}  // namespace traind
