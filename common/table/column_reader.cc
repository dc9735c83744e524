#include "common/table/column_reader.h"

#include <limits>
#include <utility>

#include "common/table/csv.h"
#include "common/table/number.h"

namespace traind {

bool IsMissingValue(absl::string_view text) {
  if (text.empty()) return true;
  const char first = text[0];
  if (text.size() > 4 || (first != '?' && first != 'n' && first != 'N')) return false;
  return IsMissing(text);
}

void NumberColumn::Add(absl::string_view text, int64_t row, int64_t line) {
  float value;
  const NumberKind kind = ParseNumber(text, value);
  if (kind == NumberKind::kNumber) {
    numbers_.push_back(value);
    return;
  }
  numbers_.push_back(std::numeric_limits<float>::quiet_NaN());
  if (IsMissingValue(text)) return;
  BadValue& bad = kind == NumberKind::kText ? text_ : not_finite_;
  if (bad.row == 0) bad = {row, line, std::string(text.substr(0, 64))};
}

absl::string_view Dictionary::Keep(absl::string_view value) {
  bytes_ += value.size();
  return kept_.emplace_back(value);
}

int32_t Dictionary::Code(absl::string_view value) {
  const auto it = codes_.find(value);
  if (it != codes_.end()) return it->second;
  if (values_.size() == kMaxCategories || bytes_ + value.size() > kMaxCategoryBytes) {
    overflowed_ = true;
    return kMissingCode;
  }
  const auto code = static_cast<int32_t>(values_.size());
  values_.push_back(Keep(value));
  codes_.emplace(values_.back(), code);
  return code;
}

int32_t Dictionary::Find(absl::string_view value) const {
  const auto it = codes_.find(value);
  return it == codes_.end() ? kUnseenCode : it->second;
}

void Dictionary::Reorder(const std::vector<int32_t>& order) {
  std::vector<int32_t> to(values_.size(), kUnseenCode);
  std::vector<absl::string_view> values;
  for (const int32_t old : order) {
    to[static_cast<size_t>(old)] = static_cast<int32_t>(values.size());
    values.push_back(values_[static_cast<size_t>(old)]);
  }
  values_ = std::move(values);
  for (auto it = codes_.begin(); it != codes_.end();) {
    it->second = to[static_cast<size_t>(it->second)];
    if (it->second == kUnseenCode) {
      codes_.erase(it++);
    } else {
      ++it;
    }
  }
}

}  // namespace traind
