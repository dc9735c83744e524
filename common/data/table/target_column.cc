#include "common/data/table/target_column.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "common/base/status_macros.h"
#include "common/data/table/feature_columns.h"
#include "common/data/table/number.h"

namespace traind {

absl::Status TargetColumn::Check(const ColumnValues& values) const {
  if (kind_ == TargetKind::kValue) {
    const std::vector<BadValue>& texts = values.numbers.texts().first;
    const BadValue text = texts.empty() ? BadValue() : texts.front();
    const BadValue& not_finite = values.numbers.not_finite();
    if (text.row == 0 && not_finite.row == 0) return absl::OkStatus();
    const bool is_text = text.row > 0 && (not_finite.row == 0 || text.row < not_finite.row);
    const BadValue& bad = is_text ? text : not_finite;
    return absl::InvalidArgumentError(
        absl::StrCat(Place(file_, bad.row, bad.line, name_), ": '", bad.text, "' is ",
                     is_text ? "not a number; a regression needs numbers in its target"
                             : "not a finite number"));
  }
  if (values.dictionary.values().size() <= kMaxClasses) return absl::OkStatus();
  const auto first =
      std::find(values.codes.begin(), values.codes.end(), static_cast<int32_t>(kMaxClasses));
  const absl::string_view value = values.dictionary.values()[kMaxClasses];
  float number = 0;
  return absl::InvalidArgumentError(
      absl::StrCat(file_, ": target '", name_, "' has more than ", kMaxClasses, " classes (row ",
                   first - values.codes.begin() + 1, " brings '", value.substr(0, 64), "'); ",
                   ParseNumber(value, number) == NumberKind::kNumber
                       ? "should task.type be regression?"
                       : "name another column by data.target"));
}

absl::Status TargetColumn::Constant(absl::string_view value) const {
  return absl::InvalidArgumentError(
      absl::StrCat(file_, ": target '", name_, "' is constant: '", value, "' in every row"));
}

absl::Status TargetColumn::FinishClasses(ColumnValues& column, std::vector<std::string>& classes,
                                         ColumnRows& rows) {
  const std::vector<absl::string_view>& values = column.dictionary.values();
  std::vector<float> numbers(values.size());
  numeric_classes_ = true;
  for (size_t i = 0; i < values.size(); ++i) {
    numeric_classes_ &= ParseNumber(values[i], numbers[i]) == NumberKind::kNumber;
  }
  std::vector<int32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const auto i = static_cast<size_t>(a), j = static_cast<size_t>(b);
    if (numeric_classes_ && numbers[i] != numbers[j]) return numbers[i] < numbers[j];
    return values[i] < values[j];
  });
  // "1" and "1.0" are the same class, named by the shorter text.
  std::vector<int32_t> to(values.size());
  for (const int32_t old : order) {
    const auto i = static_cast<size_t>(old);
    if (!numeric_classes_ || classes.empty() || class_numbers_.back() != numbers[i]) {
      classes.emplace_back(values[i]);
      class_numbers_.push_back(numbers[i]);
    }
    to[i] = static_cast<int32_t>(classes.size()) - 1;
  }
  for (int32_t& code : column.codes) {
    if (code >= 0) code = to[static_cast<size_t>(code)];
  }
  for (const std::string& name : classes) dictionary_.Code(name);
  if (classes.size() == 1) return Constant(classes[0]);
  rows.codes = std::move(column.codes);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<bool>> TargetColumn::Present(const ColumnValues& values) const {
  std::vector<bool> present;
  if (kind_ == TargetKind::kValue) {
    for (const float number : values.numbers.numbers()) present.push_back(!std::isnan(number));
  } else {
    for (const int32_t code : values.codes) present.push_back(code != kMissingCode);
  }
  if (std::find(present.begin(), present.end(), true) == present.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_, ": target '", name_, "' is missing in every row"));
  }
  return present;
}

absl::Status TargetColumn::Finish(const std::vector<uint32_t>& kept, ColumnValues& values,
                                  std::vector<std::string>& classes, ColumnRows& rows) {
  if (kind_ == TargetKind::kClasses) {
    KeepRows(kept, values.codes);
    return FinishClasses(values, classes, rows);
  }
  std::vector<float>& numbers = values.numbers.numbers();
  KeepRows(kept, numbers);
  const auto first =
      std::find_if(numbers.begin(), numbers.end(), [](float x) { return !std::isnan(x); });
  if (first == numbers.end() ||
      std::all_of(first, numbers.end(), [&](float x) { return x == *first || std::isnan(x); })) {
    return Constant(first == numbers.end() ? "missing" : absl::StrCat(*first));
  }
  rows.numbers = std::move(numbers);
  return absl::OkStatus();
}

std::string TargetColumn::ClassesOfOneWord() const {
  std::map<std::string, absl::string_view> words;
  for (const absl::string_view name : dictionary_.values()) {
    const auto [other, inserted] = words.emplace(absl::AsciiStrToLower(name), name);
    if (!inserted) return absl::StrCat("'", other->second, "' and '", name, "'");
  }
  return "";
}

int32_t TargetColumn::FindClass(absl::string_view text) const {
  const int32_t code = dictionary_.Find(text);
  float number;
  if (code != kUnseenCode || !numeric_classes_ ||
      ParseNumber(text, number) != NumberKind::kNumber) {
    return code;
  }
  const auto it = std::lower_bound(class_numbers_.begin(), class_numbers_.end(), number);
  if (it == class_numbers_.end() || *it != number) return kUnseenCode;
  return static_cast<int32_t>(it - class_numbers_.begin());
}

void TestTarget::Add(absl::string_view text, int64_t row, int64_t line, ColumnRows& rows) {
  bool scored = true;
  if (train_.kind() == TargetKind::kClasses) {
    const int32_t code = IsMissingValue(text) ? kMissingCode : train_.FindClass(text);
    scored = code != kUnseenCode;
    rows.codes.push_back(code);
  } else {
    float value;
    const NumberKind kind = ParseNumber(text, value);
    scored = kind == NumberKind::kNumber || IsMissingNumber(text);
    rows.numbers.push_back(kind == NumberKind::kNumber ? value : std::nanf(""));
  }
  if (scored) return;
  if (++count_ == 1) first_ = {row, line, std::string(text.substr(0, 64))};
}

void TestTarget::Finish(std::vector<std::string>& warnings) const {
  if (count_ == 0) return;
  const bool classes = train_.kind() == TargetKind::kClasses;
  warnings.push_back(
      absl::StrCat(Place(file_, first_.row, first_.line, train_.name()), ": '", first_.text,
                   "' is ", classes ? "not a class of the training file" : "not a finite number",
                   "; ", count_, count_ == 1 ? " row is" : " rows are", " not scored"));
}

}  // namespace traind
