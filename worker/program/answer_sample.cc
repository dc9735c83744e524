#include "worker/program/answer_sample.h"

#include <absl/container/flat_hash_map.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/status_macros.h"
#include "common/data/table/csv.h"
#include "common/data/table/feature_columns.h"
#include "common/data/table/number.h"

namespace traind {
namespace {

std::string Shown(absl::string_view text) {
  constexpr size_t kMost = 40;
  return absl::StrCat("'", text.substr(0, kMost), text.size() > kMost ? "..." : "", "'");
}

std::string Listed(const std::vector<std::string>& names) {
  constexpr size_t kMost = 8;
  const std::vector<std::string> shown(names.begin(),
                                       names.begin() + std::min(kMost, names.size()));
  return absl::StrCat("'", absl::StrJoin(shown, "', '"), "'", names.size() > kMost ? ", ..." : "");
}

bool IsIn(const Range& range, absl::string_view text) {
  if (!PlaceOf(range, text).has_value()) return false;
  const bool whole = range.kind == Range::kInt || range.kind == Range::kLogInt;
  double value = 0;
  return !whole || (absl::SimpleAtod(text, &value) && value == std::floor(value));
}

bool IsNumber(absl::string_view text) {
  float value = 0;
  return ParseNumber(text, value) != NumberKind::kText;
}

}  // namespace

// Reads one file and compares it with the sample.
class SampleChecker {
 public:
  SampleChecker(const AnswerSample& sample, absl::string_view bytes, const std::string& name)
      : sample_(sample), bytes_(bytes), name_(name) {}

  absl::Status Check() {
    ASSIGN_OR_RETURN(header_, ReadCsvHeader(bytes_, name_));
    RETURN_IF_ERROR(CheckHeader());
    const char delimiter = DelimiterOf(bytes_, name_);
    RETURN_IF_ERROR(CheckCsvText(bytes_, name_, delimiter, header_));
    CsvReader reader(bytes_, name_, delimiter);
    RETURN_IF_ERROR(reader.Next().status());  // the header
    while (true) {
      ASSIGN_OR_RETURN(const bool more, reader.Next());
      if (!more) break;
      ++row_;
      line_ = reader.line();
      if (reader.fields().size() != header_.size()) {
        return RaggedRow(name_, row_, line_, reader.fields().size(), header_);
      }
      if (compares()) RETURN_IF_ERROR(CheckPlace(reader.fields()[0]));
      for (size_t column = compares() ? 1 : 0; column < header_.size(); ++column) {
        RETURN_IF_ERROR(CheckValue(column, reader.fields()[column]));
      }
    }
    if (compares() && static_cast<size_t>(row_) < sample_.rows_.size()) {
      return Wrong(absl::StrCat("there are ", row_, " rows, but the sample has ",
                                sample_.rows_.size(), "; the first that is missing is ",
                                Shown(sample_.rows_[static_cast<size_t>(row_)])));
    }
    return absl::OkStatus();
  }

 private:
  bool compares() const { return sample_.file_ != nullptr; }
  absl::Status Wrong(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(name_, ": ", what));
  }
  absl::Status WrongAt(size_t column, absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat(Place(name_, row_, line_, header_[column]), ": ", what));
  }

  absl::Status CheckHeader() {
    if (compares() && header_ != sample_.header_) {
      std::vector<std::string> own = header_, wanted = sample_.header_;
      std::sort(own.begin(), own.end());
      std::sort(wanted.begin(), wanted.end());
      return Wrong(absl::StrCat("its columns are ", Listed(header_), ", but those of the sample ",
                                Listed(sample_.header_), own == wanted ? ", in this order" : ""));
    }
    for (const Parameter& parameter : sample_.space_) {
      const auto found = std::find(header_.begin(), header_.end(), parameter.path);
      if (found == header_.end()) {
        return Wrong(absl::StrCat("there is no column ", Shown(parameter.path), ", of ranges"));
      }
      range_of_[static_cast<size_t>(found - header_.begin())] = &parameter.range;
    }
    return absl::OkStatus();
  }

  absl::Status CheckPlace(absl::string_view field) {
    const auto at = static_cast<size_t>(row_ - 1);
    if (at < sample_.rows_.size() && field == sample_.rows_[at]) return absl::OkStatus();
    const auto& rows = sample_.rows_;
    const auto found = std::find(rows.begin(), rows.end(), field);
    if (found == rows.end()) {
      return WrongAt(0, absl::StrCat(Shown(field), " is not in the sample"));
    }
    if (static_cast<size_t>(found - rows.begin()) < at) {
      return WrongAt(0, absl::StrCat(Shown(field), " is there twice; before that in row ",
                                     found - rows.begin() + 1));
    }
    return WrongAt(0, absl::StrCat(Shown(field), " is there where the sample has ",
                                   Shown(rows[at]), "; rows have the sample's order"));
  }

  absl::Status CheckValue(size_t column, absl::string_view field) const {
    const auto range = range_of_.find(column);
    if (!compares() && range == range_of_.end()) return absl::OkStatus();
    if (IsMissing(field)) {
      return WrongAt(column, absl::StrCat("the value is missing (", Shown(field), ")"));
    }
    const bool number = compares() && sample_.numeric_[column];
    float value = 0;
    if (number && ParseNumber(field, value) != NumberKind::kNumber) {
      return WrongAt(column, absl::StrCat(Shown(field), IsNumber(field) ? " is not finite"
                                                                        : " is no number"));
    }
    if (range == range_of_.end() || IsIn(*range->second, field)) return absl::OkStatus();
    return WrongAt(column, absl::StrCat(Shown(field), " is not in ", Text(*range->second)));
  }

  const AnswerSample& sample_;
  const absl::string_view bytes_;
  const std::string& name_;
  std::vector<std::string> header_;
  absl::flat_hash_map<size_t, const Range*> range_of_;  // by column
  int64_t row_ = 0, line_ = 0;
};

absl::Status AnswerSample::ReadRows(const std::string& name) {
  const absl::string_view bytes = file_->bytes();
  ASSIGN_OR_RETURN(header_, ReadCsvHeader(bytes, name));
  const char delimiter = DelimiterOf(bytes, name);
  RETURN_IF_ERROR(CheckCsvText(bytes, name, delimiter, header_));
  numeric_.assign(header_.size(), true);
  CsvReader reader(bytes, name, delimiter);
  RETURN_IF_ERROR(reader.Next().status());
  absl::flat_hash_map<std::string, size_t> seen;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader.Next());
    if (!more) break;
    const auto row = static_cast<int64_t>(rows_.size()) + 1;
    if (reader.fields().size() != header_.size()) {
      return RaggedRow(name, row, reader.line(), reader.fields().size(), header_);
    }
    rows_.emplace_back(reader.fields()[0]);
    const auto [before, fresh] = seen.try_emplace(rows_.back(), rows_.size());
    if (!fresh) {
      return absl::InvalidArgumentError(
          absl::StrCat(Place(name, row, reader.line(), header_[0]), ": ", Shown(rows_.back()),
                       " is there twice; before that in row ", before->second));
    }
    for (size_t column = 0; column < header_.size(); ++column) {
      const absl::string_view field = reader.fields()[column];
      if (!IsMissing(field) && !IsNumber(field)) numeric_[column] = false;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<AnswerSample> AnswerSample::Read(const std::string& path,
                                                const std::map<std::string, std::string>& ranges) {
  AnswerSample sample;
  ASSIGN_OR_RETURN(sample.space_, ParseSpace({ranges.begin(), ranges.end()}));
  if (path.empty()) return sample;
  const std::string name = path.substr(path.rfind('/') + 1);
  ASSIGN_OR_RETURN(sample.file_, MappedFile::Open(path));
  RETURN_IF_ERROR(sample.ReadRows(name));
  for (const Parameter& parameter : sample.space_) {
    const auto& header = sample.header_;
    if (std::find(header.begin(), header.end(), parameter.path) != header.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": there is no column ", Shown(parameter.path), ", of ranges"));
  }
  return sample;
}

absl::Status AnswerSample::Check(absl::string_view bytes, const std::string& name) const {
  return SampleChecker(*this, bytes, name).Check();
}

}  // namespace traind
