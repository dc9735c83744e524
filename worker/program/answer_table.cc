#include "worker/program/answer_table.h"

#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>

#include "common/base/status_macros.h"
#include "common/base/suggest.h"
#include "common/data/table/csv.h"
#include "common/data/table/decimal_commas.h"
#include "common/data/table/feature_columns.h"
#include "common/data/table/number.h"

namespace traind {
namespace {

constexpr ptrdiff_t kNone = -1;
constexpr char kRowColumn[] = "row";
constexpr char kAnswerColumn[] = "prediction";
constexpr char kClassPrefix[] = "p_";
constexpr double kMostOff = 0.02;   // of a row's sum from 1
constexpr float kRounding = 1e-5F;  // beyond 0 and 1
constexpr size_t kShownCharacters = 40;

// Returns at most so much of a text as a message shows.
std::string Shown(absl::string_view text) {
  return absl::StrCat(text.substr(0, kShownCharacters),
                      text.size() > kShownCharacters ? "..." : "");
}

std::string Several(std::vector<std::string> names) {
  constexpr size_t kMost = 5;
  const size_t count = names.size();
  if (count > kMost) names.resize(kMost);
  return absl::StrCat("'", absl::StrJoin(names, "', '"), "'",
                      count > kMost ? absl::StrCat(" and ", count - kMost, " more") : "");
}

class AnswerReader {
 public:
  AnswerReader(absl::string_view bytes, const std::string& name, const AnswerRows& rows)
      : bytes_(bytes), name_(name), rows_(rows) {}

  absl::StatusOr<std::vector<float>> Read();

 private:
  absl::Status Wrong(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(name_, ": ", what));
  }
  absl::Status WrongAt(ptrdiff_t column, absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat(Place(name_, row_, line_, header_[static_cast<size_t>(column)]), ": ", what));
  }
  ptrdiff_t Find(absl::string_view column) const;
  absl::Status FindColumns();
  absl::Status FindIds();
  absl::Status FindClasses();
  absl::Status FindAnswer();
  absl::Status TakeRow(const std::vector<absl::string_view>& fields);
  absl::StatusOr<size_t> Position(const std::vector<absl::string_view>& fields);
  absl::StatusOr<size_t> NumberedRow(absl::string_view text) const;
  absl::StatusOr<float> Number(absl::string_view text, ptrdiff_t column) const;
  absl::Status TakeProbabilities(const std::vector<absl::string_view>& fields, float* out) const;
  absl::Status TakeClass(absl::string_view text, float* out) const;
  absl::Status CheckAllThere() const;
  std::string NameOf(size_t position) const;

  const absl::string_view bytes_;
  const std::string& name_;
  const AnswerRows& rows_;
  std::vector<std::string> header_;
  ptrdiff_t id_at_ = kNone, answer_at_ = kNone;
  std::vector<ptrdiff_t> class_at_;  // of each class; empty: there is a column of answers
  absl::flat_hash_map<absl::string_view, size_t> position_of_;  // of each id
  std::vector<int64_t> seen_;                                   // row of the file; 0: none yet
  int64_t row_ = 0, line_ = 0;
  std::vector<float> answers_;
};

ptrdiff_t AnswerReader::Find(absl::string_view column) const {
  const auto found = std::find(header_.begin(), header_.end(), column);
  return found == header_.end() ? kNone : found - header_.begin();
}

absl::Status AnswerReader::FindIds() {
  if (rows_.ids.empty()) {
    const bool other =
        rows_.target == kRowColumn ||
        std::find(rows_.classes.begin(), rows_.classes.end(), kRowColumn) != rows_.classes.end();
    // An id without names to compare with is no answer, either.
    id_at_ = rows_.id.empty() ? (other ? kNone : Find(kRowColumn)) : Find(rows_.id);
    return absl::OkStatus();
  }
  id_at_ = Find(rows_.id);
  if (id_at_ == kNone) {
    return Wrong(absl::StrCat("there is no column '", rows_.id, "', which names the rows",
                              DidYouMean(rows_.id, header_)));
  }
  for (size_t i = 0; i < rows_.ids.size(); ++i) position_of_[rows_.ids[i]] = i;
  return absl::OkStatus();
}

// Finds a column for each class, where there are any.
absl::Status AnswerReader::FindClasses() {
  std::vector<std::string> missing;
  for (const std::string& name : rows_.classes) {
    ptrdiff_t at = Find(absl::StrCat(kClassPrefix, name));
    if (at == kNone && name != rows_.target && name != rows_.id) at = Find(name);
    class_at_.push_back(at);
    if (at == kNone) missing.push_back(name);
  }
  const bool none = missing.size() == rows_.classes.size();
  if (!none && !missing.empty()) {
    return Wrong(absl::StrCat("there are no probabilities of ",
                              missing.size() > 1 ? "the classes " : "class ", Several(missing)));
  }
  for (const std::string& column : header_) {
    if (none || !absl::StartsWith(column, kClassPrefix)) continue;
    const size_t at = static_cast<size_t>(&column - header_.data());
    if (std::find(class_at_.begin(), class_at_.end(), static_cast<ptrdiff_t>(at)) ==
        class_at_.end()) {
      return Wrong(
          absl::StrCat("column '", column, "' is of no class; there are ", Several(rows_.classes)));
    }
  }
  if (none) class_at_.clear();
  return absl::OkStatus();
}

absl::Status AnswerReader::FindAnswer() {
  for (const std::string& column : {rows_.target, std::string(kAnswerColumn)}) {
    answer_at_ = Find(column);
    if (answer_at_ != kNone && answer_at_ != id_at_) return absl::OkStatus();
  }
  const auto width = static_cast<ptrdiff_t>(header_.size());
  if (width - (id_at_ == kNone ? 0 : 1) == 1) {
    answer_at_ = id_at_ == 0 ? 1 : 0;
    return absl::OkStatus();
  }
  return Wrong(absl::StrCat("there is no column '", rows_.target, "' or '", kAnswerColumn, "'",
                            rows_.classes.empty() ? "" : ", and no column for each class",
                            "; its columns are ", Several(header_)));
}

absl::Status AnswerReader::FindColumns() {
  ASSIGN_OR_RETURN(header_, ReadCsvHeader(bytes_, name_));
  RETURN_IF_ERROR(FindIds());
  RETURN_IF_ERROR(FindClasses());
  return class_at_.empty() ? FindAnswer() : absl::OkStatus();
}

absl::StatusOr<size_t> AnswerReader::NumberedRow(absl::string_view text) const {
  int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number) || number < 0 ||
      number >= static_cast<int64_t>(rows_.count)) {
    return WrongAt(id_at_,
                   absl::StrCat("'", Shown(text), "' is no row; rows are numbered from 0 to ",
                                rows_.count - 1));
  }
  return static_cast<size_t>(number);
}

// Returns the place of the current row's answer.
absl::StatusOr<size_t> AnswerReader::Position(const std::vector<absl::string_view>& fields) {
  size_t position = static_cast<size_t>(row_ - 1);
  const bool ordered = id_at_ == kNone || (rows_.ids.empty() && !rows_.id.empty());
  if (ordered) {
    if (position >= rows_.count) {
      return Wrong(absl::StrCat("row ", row_, " (line ", line_, ") is one too many: there are ",
                                rows_.count, " rows to predict"));
    }
  } else if (rows_.ids.empty()) {
    ASSIGN_OR_RETURN(position, NumberedRow(fields[static_cast<size_t>(id_at_)]));
  } else {
    const absl::string_view id = fields[static_cast<size_t>(id_at_)];
    const auto found = position_of_.find(id);
    if (found == position_of_.end()) {
      return WrongAt(id_at_, absl::StrCat("'", Shown(id), "' is none of the ", rows_.count,
                                          " rows to predict"));
    }
    position = found->second;
  }
  if (seen_[position] > 0) {
    return WrongAt(id_at_, absl::StrCat("'", NameOf(position),
                                        "' is there twice; before that in row ", seen_[position]));
  }
  seen_[position] = row_;
  return position;
}

absl::StatusOr<float> AnswerReader::Number(absl::string_view text, ptrdiff_t column) const {
  if (IsMissing(text)) {
    return WrongAt(column, absl::StrCat("the prediction is missing ('", Shown(text), "')"));
  }
  float value = 0;
  switch (ParseNumber(text, value)) {
    case NumberKind::kNumber:
      return value;
    case NumberKind::kNotFinite:
      return WrongAt(column, absl::StrCat("'", Shown(text), "' is not finite"));
    default:
      return WrongAt(column, absl::StrCat("'", Shown(text), "' is no number"));
  }
}

absl::Status AnswerReader::TakeProbabilities(const std::vector<absl::string_view>& fields,
                                             float* out) const {
  double sum = 0;
  for (size_t k = 0; k < class_at_.size(); ++k) {
    const absl::string_view text = fields[static_cast<size_t>(class_at_[k])];
    ASSIGN_OR_RETURN(out[k], Number(text, class_at_[k]));
    if (out[k] < -kRounding || out[k] > 1 + kRounding) {
      return WrongAt(class_at_[k],
                     absl::StrCat("'", Shown(text), "' is no probability, from 0 to 1"));
    }
    out[k] = std::clamp(out[k], 0.0F, 1.0F);
    sum += out[k];
  }
  if (std::abs(sum - 1) > kMostOff) {
    return WrongAt(class_at_[0],
                   absl::StrCat("the row's probabilities sum to ", sum, " instead of 1"));
  }
  for (size_t k = 0; k < class_at_.size(); ++k) out[k] = static_cast<float>(out[k] / sum);
  return absl::OkStatus();
}

absl::Status AnswerReader::TakeClass(absl::string_view text, float* out) const {
  const auto& classes = rows_.classes;
  auto found = std::find(classes.begin(), classes.end(), text);
  if (found == classes.end()) {
    found = std::find_if(classes.begin(), classes.end(),
                         [text](const std::string& name) { return SameClass(text, name); });
  }
  if (found == classes.end()) {
    if (IsMissing(text)) return Number(text, answer_at_).status();
    return WrongAt(answer_at_,
                   absl::StrCat("'", Shown(text), "' is no class; there are ", Several(classes)));
  }
  out[found - classes.begin()] = 1;
  return absl::OkStatus();
}

absl::Status AnswerReader::TakeRow(const std::vector<absl::string_view>& fields) {
  if (fields.size() != header_.size()) {
    return RaggedRow(name_, row_, line_, fields.size(), header_);
  }
  ASSIGN_OR_RETURN(const size_t position, Position(fields));
  float* const out = &answers_[position * std::max<size_t>(1, rows_.classes.size())];
  if (!class_at_.empty()) return TakeProbabilities(fields, out);
  const absl::string_view text = fields[static_cast<size_t>(answer_at_)];
  if (!rows_.classes.empty()) return TakeClass(text, out);
  ASSIGN_OR_RETURN(*out, Number(text, answer_at_));
  return absl::OkStatus();
}

std::string AnswerReader::NameOf(size_t position) const {
  return rows_.ids.empty() ? absl::StrCat(position) : Shown(rows_.ids[position]);
}

absl::Status AnswerReader::CheckAllThere() const {
  const auto missing = std::count(seen_.begin(), seen_.end(), 0);
  if (missing == 0) return absl::OkStatus();
  const auto first = static_cast<size_t>(std::find(seen_.begin(), seen_.end(), 0) - seen_.begin());
  return Wrong(absl::StrCat("there are ", row_, " rows, but ", rows_.count,
                            " to predict; the first that is missing is ",
                            rows_.ids.empty() ? "row " : "", "'", NameOf(first), "'"));
}

absl::StatusOr<std::vector<float>> AnswerReader::Read() {
  RETURN_IF_ERROR(FindColumns());
  const char delimiter = DelimiterOf(bytes_, name_);
  RETURN_IF_ERROR(CheckCsvText(bytes_, name_, delimiter, header_));
  seen_.assign(rows_.count, 0);
  answers_.assign(rows_.count * std::max<size_t>(1, rows_.classes.size()), 0);
  const auto points = WithDecimalPoints(bytes_, delimiter);
  CsvReader reader(points ? absl::string_view(points->bytes) : bytes_, name_, delimiter);
  RETURN_IF_ERROR(reader.Next().status());  // the header
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader.Next());
    if (!more) break;
    ++row_;
    line_ = reader.line();
    RETURN_IF_ERROR(TakeRow(reader.fields()));
  }
  RETURN_IF_ERROR(CheckAllThere());
  return std::move(answers_);
}

}  // namespace

bool SameClass(absl::string_view a, absl::string_view b) {
  if (a == b) return true;
  float x = 0, y = 0;
  return ParseNumber(a, x) == NumberKind::kNumber && ParseNumber(b, y) == NumberKind::kNumber &&
         x == y;
}

absl::StatusOr<std::vector<float>> ReadAnswerTable(absl::string_view bytes, const std::string& name,
                                                   const AnswerRows& rows) {
  return AnswerReader(bytes, name, rows).Read();
}

}  // namespace traind
