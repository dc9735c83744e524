#include "common/data/table/column_reader.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "common/data/table/csv.h"
#include "common/data/table/date_text.h"
#include "common/data/table/number.h"

namespace traind {
namespace {

constexpr int kRecentBits = 6;
constexpr size_t kRecentValues = 1 << kRecentBits;

template <typename Word>
bool SameWords(const char* a, const char* b, size_t size) {
  Word a_first, a_last, b_first, b_last;
  std::memcpy(&a_first, a, sizeof(Word));
  std::memcpy(&b_first, b, sizeof(Word));
  std::memcpy(&a_last, a + size - sizeof(Word), sizeof(Word));
  std::memcpy(&b_last, b + size - sizeof(Word), sizeof(Word));
  return a_first == b_first && a_last == b_last;
}

// Compares two texts; short ones by two loads that may overlap.
bool Same(absl::string_view a, absl::string_view b) {
  const size_t size = a.size();
  if (size != b.size()) return false;
  if (size > 16) return std::memcmp(a.data(), b.data(), size) == 0;
  if (size >= 8) return SameWords<uint64_t>(a.data(), b.data(), size);
  if (size >= 4) return SameWords<uint32_t>(a.data(), b.data(), size);
  for (size_t i = 0; i < size; ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

}  // namespace

bool IsMissingValue(absl::string_view text) {
  if (text.empty()) return true;
  const char first = text[0];
  if (first != '?' && first != 'n' && first != 'N' && first != '#' && first != '<' &&
      first != '-') {
    return false;
  }
  return IsMissing(text);
}

void StrayTexts::Add(BadValue text) {
  constexpr size_t kMostNamed = 3;
  ++count;
  if (first.size() < kMostNamed) first.push_back(std::move(text));
}

void StrayTexts::Append(const StrayTexts& next, int64_t rows, int64_t lines) {
  for (const BadValue& text : next.first) Add({text.row + rows, text.line + lines, text.text});
  count += next.count - static_cast<int64_t>(next.first.size());
  numbers += next.numbers;
}

std::string StrayTextsWarning(absl::string_view file, absl::string_view column,
                              const StrayTexts& texts, absl::string_view kind) {
  std::string warning =
      absl::StrCat(file, ": column '", column, "': ", texts.count, " of ",
                   texts.numbers + texts.count, " values ",
                   texts.count == 1 ? absl::StrCat("is not a ", kind, " and counts")
                                    : absl::StrCat("are not ", kind, "s and count"),
                   " as missing: ");
  for (size_t i = 0; i < texts.first.size(); ++i) {
    const BadValue& text = texts.first[i];
    absl::StrAppend(&warning, i == 0 ? "'" : ", '", text.text, "' (row ", text.row, ", line ",
                    text.line, ")");
  }
  if (texts.count > static_cast<int64_t>(texts.first.size())) absl::StrAppend(&warning, ", ...");
  return warning;
}

void NumberColumn::Clear() {
  numbers_.clear();
  exact_.clear();
  texts_ = StrayTexts();
  not_finite_ = BadValue();
}

void NumberColumn::Add(const absl::string_view* fields, size_t stride, size_t count,
                       const int64_t* lines) {
  const size_t before = numbers_.size();
  numbers_.resize(before + count);
  float* const numbers = numbers_.data() + before;
  ParseNumbers(fields, stride, count, numbers);
  KeepExact(fields, stride, before);
  for (size_t i = 0; i < count; ++i) {
    if (!std::isnan(numbers[i])) {
      ++texts_.numbers;
      continue;
    }
    const absl::string_view text = fields[i * stride];
    if (IsMissingNumber(text)) continue;
    BadValue bad = {static_cast<int64_t>(before + i) + 1, lines[i],
                    std::string(text.substr(0, 64))};
    float ignored;
    if (ParseNumber(text, ignored) == NumberKind::kText) {
      texts_.Add(std::move(bad));
    } else if (not_finite_.row == 0) {
      not_finite_ = std::move(bad);
    }
  }
}

// The fields are those of the rows from `before` on.
void NumberColumn::KeepExact(const absl::string_view* fields, size_t stride, size_t before) {
  const auto added = numbers_.begin() + static_cast<ptrdiff_t>(before);
  if (!exact_.empty()) exact_.insert(exact_.end(), added, numbers_.end());
  for (size_t row = before; row < numbers_.size(); ++row) {
    double exact;
    if (!LosesDigits(fields[(row - before) * stride], numbers_[row], exact)) continue;
    if (exact_.empty()) exact_.assign(numbers_.begin(), numbers_.end());
    exact_[row] = exact;
  }
}

void NumberColumn::Append(const NumberColumn& next, int64_t lines) {
  const auto rows = static_cast<int64_t>(numbers_.size());
  texts_.Append(next.texts_, rows, lines);
  if (const BadValue& bad = next.not_finite_; not_finite_.row == 0 && bad.row > 0) {
    not_finite_ = {bad.row + rows, bad.line + lines, bad.text};
  }
  if (exact_.empty() && !next.exact_.empty()) exact_.assign(numbers_.begin(), numbers_.end());
  if (!next.exact_.empty()) {
    exact_.insert(exact_.end(), next.exact_.begin(), next.exact_.end());
  } else if (!exact_.empty()) {
    exact_.insert(exact_.end(), next.numbers_.begin(), next.numbers_.end());
  }
  numbers_.insert(numbers_.end(), next.numbers_.begin(), next.numbers_.end());
}

void TimeColumn::Clear() {
  values_.clear();
  texts_ = StrayTexts();
  number_ = BadValue();
  date_ = BadValue();
  written_ = BadValue();
  with_zone_ = BadValue();
  without_zone_ = BadValue();
  either_ = true;
  differs_ = false;
}

void TimeColumn::Add(const absl::string_view* fields, size_t stride, size_t count,
                     const int64_t* lines) {
  for (size_t i = 0; i < count; ++i) {
    const absl::string_view text = fields[i * stride];
    double value = std::numeric_limits<double>::quiet_NaN();
    float ignored;
    const auto here = [&] {
      return BadValue{static_cast<int64_t>(values_.size()) + 1, lines[i],
                      std::string(text.substr(0, 64))};
    };
    const auto note_zone = [&] {
      BadValue& first = HasZone(text) ? with_zone_ : without_zone_;
      if (first.row == 0) first = here();
    };
    if (ParseIsoTime(text, value)) {
      if (date_.row == 0) date_ = here();
      note_zone();
    } else if (ParseNumber(text, ignored) == NumberKind::kNumber &&
               absl::SimpleAtod(text, &value)) {
      if (number_.row == 0) number_ = here();
    } else if (ParseTime(text, order_, value)) {
      double other = value;
      either_ = either_ && ParseTime(text, OtherOrder(order_), other);
      differs_ |= either_ && other != value;
      if (date_.row == 0) date_ = here();
      if (written_.row == 0) written_ = here();
      note_zone();
    } else if (value = std::numeric_limits<double>::quiet_NaN(); !IsMissingNumber(text)) {
      texts_.Add(here());
    }
    if (!std::isnan(value)) ++texts_.numbers;
    values_.push_back(value);
  }
}

void TimeColumn::Append(const TimeColumn& next, int64_t lines) {
  const auto rows = static_cast<int64_t>(values_.size());
  const auto move = [&](const BadValue& from, BadValue& to) {
    if (to.row == 0 && from.row > 0) to = {from.row + rows, from.line + lines, from.text};
  };
  texts_.Append(next.texts_, rows, lines);
  move(next.number_, number_);
  move(next.date_, date_);
  move(next.written_, written_);
  move(next.with_zone_, with_zone_);
  move(next.without_zone_, without_zone_);
  either_ &= next.either_;
  differs_ |= next.differs_;
  values_.insert(values_.end(), next.values_.begin(), next.values_.end());
}

void ColumnValues::Clear() {
  times.Clear();
  numbers.Clear();
  codes.clear();
  dictionary.Clear();
}

void ColumnValues::AddTexts(const absl::string_view* fields, size_t stride, size_t count) {
  const size_t before = codes.size();
  codes.resize(before + count);
  for (size_t i = 0; i < count; ++i, fields += stride) {
    codes[before + i] = IsMissingValue(*fields) ? kMissingCode : dictionary.Code(*fields);
  }
}

void ColumnValues::AppendTexts(const ColumnValues& next) {
  // Codes are assigned in order of appearance, as if the file were read in one go.
  std::vector<int32_t> code_of;
  code_of.reserve(next.dictionary.values().size());
  for (const absl::string_view value : next.dictionary.values()) {
    code_of.push_back(dictionary.Code(value));
  }
  const size_t before = codes.size();
  codes.resize(before + next.codes.size());
  for (size_t i = 0; i < next.codes.size(); ++i) {
    const int32_t code = next.codes[i];
    codes[before + i] = code < 0 ? code : code_of[static_cast<size_t>(code)];
  }
}

void Dictionary::Clear() {
  codes_.clear();
  values_.clear();
  kept_.clear();
  recent_.clear();
  bytes_ = 0;
}

absl::string_view Dictionary::Keep(absl::string_view value) {
  bytes_ += value.size();
  return kept_.emplace_back(value);
}

// REQUIRES: value is not empty; an empty one counts as missing.
Dictionary::Recent& Dictionary::RecentOf(absl::string_view value) const {
  if (recent_.empty()) recent_.resize(kRecentValues);
  const size_t size = value.size();
  uint64_t mixed = size;
  for (const char c : {value[0], value[size / 2], value[size - 1]}) {
    mixed = mixed << 8 ^ static_cast<unsigned char>(c);
  }
  return recent_[mixed * 0x9e3779b97f4a7c15 >> (64 - kRecentBits)];
}

int32_t Dictionary::Code(absl::string_view value) {
  Recent& recent = RecentOf(value);
  if (Same(recent.value, value)) return recent.code;
  const bool full = !unlimited_ && (values_.size() == kMaxCountedValues ||
                                    bytes_ + value.size() > kMaxCountedBytes);
  if (full) {
    const auto found = codes_.find(value);
    if (found == codes_.end()) return kUnseenCode;
    recent = {found->first, found->second};
    return found->second;
  }
  const auto it = codes_.lazy_emplace(value, [&](const auto& make) {
    values_.push_back(Keep(value));
    make(values_.back(), static_cast<int32_t>(values_.size()) - 1);
  });
  recent = {it->first, it->second};
  return it->second;
}

int32_t Dictionary::Find(absl::string_view value) const {
  if (value.empty()) return kUnseenCode;
  Recent& recent = RecentOf(value);
  if (Same(recent.value, value)) return recent.code;
  const auto it = codes_.find(value);
  if (it == codes_.end()) return kUnseenCode;
  recent = {it->first, it->second};
  return it->second;
}

void Dictionary::Reorder(const std::vector<int32_t>& order) {
  recent_.clear();
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
