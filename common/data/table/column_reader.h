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
#include "common/data/table/written_date.h"

namespace traind {

// A value that is not allowed where it stands.
struct BadValue {
  int64_t row = 0;  // data row from 1; 0: there is no such value
  int64_t line = 0;
  std::string text;
};

// Texts among the numbers or dates of a column. While they are few, they count as missing values.
// Threads: confined to one.
struct StrayTexts {
  int64_t numbers = 0;          // values that are numbers, or dates
  int64_t count = 0;            // values that are neither such nor missing
  std::vector<BadValue> first;  // the first few of them

  void Add(BadValue text);
  // Adds those of the rows that follow, `rows` and `lines` further down.
  void Append(const StrayTexts& next, int64_t rows, int64_t lines);
  // Whether at least 95 % of the values that are not missing are numbers, or dates.
  bool Few() const { return count * 20 <= numbers + count; }
};

// Returns "FILE: column 'C': 2 of 314 values are not numbers and count as missing: 'n.a.' (row 17,
// line 18), ...". kind: "number", or "date".
std::string StrayTextsWarning(absl::string_view file, absl::string_view column,
                              const StrayTexts& texts, absl::string_view kind = "number");

// The numbers of a column. A value that is not a number is recorded and counts as missing.
// Threads: confined to one.
class NumberColumn {
 public:
  void Reserve(size_t rows) { numbers_.reserve(rows); }
  void Clear();
  // Adds the fields at 0, stride, 2 * stride... with their lines; row numbers continue.
  void Add(const absl::string_view* fields, size_t stride, size_t count, const int64_t* lines);
  // Appends the rows that `next` has read, which follow this one's; `lines` lines of the file come
  // before them.
  void Append(const NumberColumn& next, int64_t lines);

  // The values that are texts, and the first that is not finite.
  const StrayTexts& texts() const { return texts_; }
  const BadValue& not_finite() const { return not_finite_; }
  std::vector<float>& numbers() { return numbers_; }
  const std::vector<float>& numbers() const { return numbers_; }
  // The numbers in double, if float32 has not enough digits for some of them; else empty.
  std::vector<double>& exact() { return exact_; }

 private:
  void KeepExact(const absl::string_view* fields, size_t stride, size_t before);

  std::vector<float> numbers_;  // NaN = missing
  std::vector<double> exact_;
  StrayTexts texts_;
  BadValue not_finite_;
};

// The points in time of a column: dates (written_date.h), or plain numbers.
// Threads: confined to one.
class TimeColumn {
 public:
  explicit TimeColumn(DateOrder order = DateOrder::kMonthFirst) : order_(order) {}

  // Keeps the order.
  void Clear();
  void Add(const absl::string_view* fields, size_t stride, size_t count, const int64_t* lines);
  void Append(const TimeColumn& next, int64_t lines);
  void Reserve(size_t rows) { values_.reserve(rows); }

  // Seconds since 1970, or the column's own numbers; NaN: missing.
  std::vector<double>& values() { return values_; }
  const std::vector<double>& values() const { return values_; }
  DateOrder order() const { return order_; }
  // Whether all dates are dates in the other order, too.
  bool either() const { return either_; }
  // Whether they are, and some of them other ones.
  bool open() const { return either_ && differs_; }
  // The values that are neither dates nor numbers.
  const StrayTexts& texts() const { return texts_; }
  // The first of them, the first number, the first date, the first date that is not ISO 8601, and
  // the first dates with and without a zone.
  const BadValue& text() const { return texts_.first.empty() ? none_ : texts_.first.front(); }
  const BadValue& number() const { return number_; }
  const BadValue& date() const { return date_; }
  const BadValue& written() const { return written_; }
  const BadValue& with_zone() const { return with_zone_; }
  const BadValue& without_zone() const { return without_zone_; }

 private:
  DateOrder order_;
  std::vector<double> values_;
  StrayTexts texts_;
  BadValue none_, number_, date_, written_, with_zone_, without_zone_;
  bool either_ = true, differs_ = false;
};

// Distinct values, numbered in the order of their first appearance.
// Threads: confined to one.
class Dictionary {
 public:
  void Clear();
  // Returns the code of a value. A value that is not there yet gets a new code, or kUnseenCode once
  // there are too many values.
  int32_t Code(absl::string_view value);
  // Returns kUnseenCode for a value that is not there.
  int32_t Find(absl::string_view value) const;

  const std::vector<absl::string_view>& values() const { return values_; }
  // Lifts the limit on the number of values.
  void Unlimit() { unlimited_ = true; }
  // Reorders and selects values: order[new code] = old code.
  void Reorder(const std::vector<int32_t>& order);

 private:
  // A recently seen value; most columns have few distinct values, so most look-ups end here.
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
  bool unlimited_ = false;
};

// The values of a column of a file, or of a part of it.
struct ColumnValues {
  NumberColumn numbers;
  TimeColumn times;
  std::vector<int32_t> codes;  // indices into the dictionary, kMissingCode or kUnseenCode
  Dictionary dictionary;

  void Clear();
  void AddTexts(const absl::string_view* fields, size_t stride, size_t count);
  // Appends the rows that `next` has read, which follow this one's.
  void AppendTexts(const ColumnValues& next);
};

// The number of categories that a column keeps: its most frequent values.
inline constexpr size_t kMaxCategories = 10'000;
// The number of distinct values that are counted for it, and of their bytes: those that come first
// in the file.
inline constexpr size_t kMaxCountedValues = 100'000;
inline constexpr size_t kMaxCountedBytes = 16 << 20;

// Whether a value counts as missing; a faster version of IsMissing in csv.h.
bool IsMissingValue(absl::string_view text);

}  // namespace traind
