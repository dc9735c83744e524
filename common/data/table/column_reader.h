// Collects the values of one column of a CSV file.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "common/data/table/table.h"
#include "common/data/table/table_writer.h"

namespace traind {

// A value that stands where it may not.
struct BadValue {
  int64_t row = 0;  // data row from 1; 0: there is none
  int64_t line = 0;
  std::string text;
};

// Texts among the numbers of a column. While they are few they count as missing values.
struct StrayTexts {
  int64_t numbers = 0;          // values that are numbers
  int64_t count = 0;            // values that are neither numbers nor missing
  std::vector<BadValue> first;  // the first few of them

  void Add(BadValue text);
  // At least 95 % of the values that are not missing are numbers.
  bool Few() const { return count * 20 <= numbers + count; }
};

// "FILE: column 'C': 2 of 314 values are no numbers and count as missing: 'n.a.' (row 17, line 18),
// ...".
std::string StrayTextsWarning(absl::string_view file, absl::string_view column,
                              const StrayTexts& texts);

// Numbers of a column. A value that is no number is remembered and counts as missing.
class NumberColumn {
 public:
  void Reserve(size_t rows) { numbers_.reserve(rows); }
  void Clear();
  // The fields at 0, stride, 2 * stride... with their lines; rows are counted on.
  void Add(const absl::string_view* fields, size_t stride, size_t count, const int64_t* lines);
  // What another one has read behind this one's rows; its lines follow `lines` of the file.
  void Append(const NumberColumn& next, int64_t lines);

  // The values that are texts, and the first that is not finite.
  const StrayTexts& texts() const { return texts_; }
  const BadValue& not_finite() const { return not_finite_; }
  std::vector<float>& numbers() { return numbers_; }
  const std::vector<float>& numbers() const { return numbers_; }

 private:
  std::vector<float> numbers_;  // NaN = missing
  StrayTexts texts_;
  BadValue not_finite_;
};

// Points in time of a column: ISO 8601, or plain numbers.
class TimeColumn {
 public:
  void Clear();
  void Add(const absl::string_view* fields, size_t stride, size_t count, const int64_t* lines);
  void Append(const TimeColumn& next, int64_t lines);
  void Reserve(size_t rows) { values_.reserve(rows); }

  // Seconds since 1970, or the numbers; NaN: missing.
  std::vector<double>& values() { return values_; }
  const std::vector<double>& values() const { return values_; }
  // The first value that is neither, the first that is a number, the first that is a date.
  const BadValue& text() const { return text_; }
  const BadValue& number() const { return number_; }
  const BadValue& date() const { return date_; }

 private:
  std::vector<double> values_;
  BadValue text_, number_, date_;
};

// Distinct values, numbered as they come. Threads: confined to one.
class Dictionary {
 public:
  void Clear();
  // The code of a value; a new one if it was not there yet, or kMissingCode once
  // there are too many (overflowed()).
  int32_t Code(absl::string_view value);
  // kUnseenCode for a value that is not there.
  int32_t Find(absl::string_view value) const;

  const std::vector<absl::string_view>& values() const { return values_; }
  bool overflowed() const { return overflowed_; }
  void SetOverflowed() { overflowed_ = true; }
  // Takes any number of values from now on.
  void Unlimit() { unlimited_ = true; }
  // The given order and choice of values: order[new code] = old code.
  void Reorder(const std::vector<int32_t>& order);

 private:
  // A value seen lately; most columns have few, so most look-ups end here.
  struct Recent {
    absl::string_view value;
    int32_t code = 0;
  };

  absl::string_view Keep(absl::string_view value);
  Recent& RecentOf(absl::string_view value) const;

  absl::flat_hash_map<absl::string_view, int32_t> codes_;  // keys lie in kept_
  std::vector<absl::string_view> values_;                  // [code], in kept_ too
  std::deque<std::string> kept_;                           // never moved
  mutable std::vector<Recent> recent_;
  size_t bytes_ = 0;
  bool overflowed_ = false;
  bool unlimited_ = false;
};

// What a column of a file, or of a part of it, holds.
struct ColumnValues {
  NumberColumn numbers;
  TimeColumn times;
  std::vector<int32_t> codes;  // of values in the dictionary, or kMissingCode
  Dictionary dictionary;

  void Clear();
  void AddTexts(const absl::string_view* fields, size_t stride, size_t count);
  // What another one has read behind this one's rows.
  void AppendTexts(const ColumnValues& next);
};

// More distinct values than these are no category: free text, or names of rows.
inline constexpr size_t kMaxCategories = 10'000;
inline constexpr size_t kMaxCategoryBytes = 16 << 20;

// Whether a value counts as missing; the quick way to csv.h's IsMissing.
bool IsMissingValue(absl::string_view text);

}  // namespace traind
