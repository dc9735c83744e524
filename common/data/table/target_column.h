// The target column while files are read.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/data/table/column_reader.h"
#include "common/data/table/file_columns.h"
#include "common/data/table/table.h"
#include "common/data/table/table_writer.h"

namespace traind {

// A target with more distinct values than this is not a classification.
inline constexpr size_t kMaxClasses = 1'000;

// The target column of the training file.
// Threads: confined to one.
class TargetColumn {
 public:
  TargetColumn(std::string file, std::string name, TargetKind kind)
      : file_(std::move(file)), name_(std::move(name)), kind_(kind) {}

  // How the column must be read.
  ColumnUse use() const {
    return kind_ == TargetKind::kValue ? ColumnUse::kNumbers : ColumnUse::kText;
  }
  // Checks the rows read so far. InvalidArgument: a value is not a finite number where kind is
  // kValue, or there are too many classes.
  absl::Status Check(const ColumnValues& values) const;

  // Returns which rows have a target. InvalidArgument: none has.
  absl::StatusOr<std::vector<bool>> Present(const ColumnValues& values) const;
  // Moves the column's values in the given rows, in their order, into `rows`. InvalidArgument: the
  // target is constant.
  absl::Status Finish(const std::vector<uint32_t>& kept, ColumnValues& values,
                      std::vector<std::string>& classes, ColumnRows& rows);

  const std::string& name() const { return name_; }
  TargetKind kind() const { return kind_; }
  // REQUIRES: Finish was called. Whether all classes are numbers, and so many that a regression may
  // be meant.
  bool LooksLikeRegression() const {
    constexpr size_t kMostNumberedClasses = 20;
    return kind_ == TargetKind::kClasses && numeric_classes_ &&
           class_numbers_.size() > kMostNumberedClasses;
  }
  size_t classes() const { return class_numbers_.size(); }
  // REQUIRES: Finish was called. Returns "'Yes' and 'yes'", of two classes that differ in letter
  // case alone; "": there are none.
  std::string ClassesOfOneWord() const;
  // REQUIRES: Finish was called. Returns the code of a class as another file writes it, or
  // kUnseenCode.
  int32_t FindClass(absl::string_view text) const;

 private:
  absl::Status FinishClasses(ColumnValues& values, std::vector<std::string>& classes,
                             ColumnRows& rows);
  absl::Status Constant(absl::string_view value) const;

  const std::string file_;
  const std::string name_;
  const TargetKind kind_;
  Dictionary dictionary_;  // of the classes
  bool numeric_classes_ = false;
  std::vector<float> class_numbers_;  // [class], if all classes are numbers
};

// The target column of the test file. It is only used for scoring, so invalid values give warnings,
// not errors.
// Threads: confined to one.
class TestTarget {
 public:
  TestTarget(std::string file, const TargetColumn& train) : file_(std::move(file)), train_(train) {}

  void Add(absl::string_view text, int64_t row, int64_t line, ColumnRows& rows);
  // Warns of values that cannot be scored.
  void Finish(std::vector<std::string>& warnings) const;

 private:
  const std::string file_;
  const TargetColumn& train_;
  BadValue first_;  // the first value that cannot be scored
  int64_t count_ = 0;
};

}  // namespace traind
