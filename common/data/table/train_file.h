// Reads the training file into a table.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "common/data/table/feature_columns.h"
#include "common/data/table/file_columns.h"
#include "common/data/table/series_input.h"
#include "common/data/table/table_source.h"
#include "common/data/table/table_writer.h"
#include "common/data/table/target_column.h"

namespace traind {

inline constexpr ptrdiff_t kAbsent = -1;

// A file's column names and their indices.
// Threads: confined to one.
class TableFileHeader {
 public:
  // Reads the header and warns of columns without a name of their own.
  absl::Status Read(const CsvFile& file, std::vector<std::string>& warnings);
  // Leaves out a last row that certainly holds totals, and warns of one that may.
  void LeaveOutTotals(std::vector<std::string>& warnings);
  const CsvText& text() const { return text_; }
  const std::vector<std::string>& names() const { return text_.header; }
  // Returns kAbsent if there is no such column, or name is empty.
  ptrdiff_t Find(const std::string& name) const;
  // InvalidArgument: there is no such column, or there are two.
  absl::StatusOr<size_t> Require(const std::string& name, absl::string_view role) const;

 private:
  CsvText text_;
  absl::flat_hash_map<std::string, ptrdiff_t> places_;
  std::vector<std::string> repeated_;  // names of several columns of the file
};

// Reads the training file's columns by their roles. Call Read, then Finish.
// Threads: confined to one.
class TrainFile {
 public:
  explicit TrainFile(const TableSource& source);

  absl::Status Read(std::vector<std::string>& warnings);
  // Names of the columns of dates whose rows leave the order of day and month open.
  std::vector<std::string> OpenDates() const;
  // The order in which a column of OpenDates() was read. Turns it.
  DateOrder DateOrderOf(const std::string& name) const;
  absl::Status TurnDates(const std::vector<std::string>& names);
  // Moves the rows into `rows`; keeps what the test file needs.
  absl::Status Finish(TableRows& rows);

  const TableFileHeader& header() const { return header_; }
  const FeatureColumns& features() const { return *features_; }
  const std::vector<TargetColumn>& targets() const { return targets_; }
  // Whether the column has another role than that of a feature.
  bool HasOtherRole(const std::string& name) const;
  // REQUIRES: there is a time column, and Finish was called.
  DateOrder time_order() const {
    return columns_->values(static_cast<size_t>(time_at_)).times.order();
  }
  // Whether the time column holds dates.
  bool times_are_dates() const { return times_are_dates_; }
  // REQUIRES: as for time_order.
  const TimeColumn& times() const { return columns_->values(static_cast<size_t>(time_at_)).times; }
  // The step of a forecast's rows; kNone if there is no usual one.
  const TimeStep& usual_step() const { return usual_step_; }

 private:
  absl::Status GiveRoles();
  absl::Status CheckTargets() const;
  absl::StatusOr<std::vector<uint32_t>> RowsWithTargets(TableSchema& schema) const;
  absl::Status CheckTimes() const;
  absl::Status OrderByTime(TableRows& rows, std::vector<uint32_t>& kept);
  void CopyTexts(const std::vector<uint32_t>& kept, TableRows& rows) const;
  absl::Status ReadGroups(const std::vector<uint32_t>& kept, TableRows& rows);
  absl::Status ReadGivenFolds(const std::vector<uint32_t>& kept, TableRows& rows);

  const TableSource& source_;
  TableFileHeader header_;
  std::vector<TargetColumn> targets_;
  std::vector<size_t> target_at_, text_at_;
  ptrdiff_t time_at_ = kAbsent, series_at_ = kAbsent, group_at_ = kAbsent, fold_at_ = kAbsent;
  std::unique_ptr<FileColumns> columns_;
  std::unique_ptr<FeatureColumns> features_;
  bool times_are_dates_ = false;
  TimeStep usual_step_;
};

}  // namespace traind
