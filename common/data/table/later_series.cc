#include "common/data/table/later_series.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/status_macros.h"
#include "common/data/table/date_parts.h"
#include "common/data/table/date_text.h"
#include "common/data/table/feature_columns.h"
#include "common/data/table/row_order.h"
#include "common/data/table/time_warnings.h"
#include "common/data/table/train_file.h"

namespace traind {
namespace {

// A row that is predicted: one of the file, or one that follows its rows.
struct LaterRow {
  size_t series = 0;
  int64_t file_row = -1;  // -1: it is not in the file
  double time = 0;
};

class Reader {
 public:
  Reader(const CsvFile& file, const InputSchema& input, const SeriesInput& series,
         const SampleShape& shape)
      : file_(file), input_(input), series_(series), shape_(shape), targets_(input.targets.size()) {
    features_only_ = input;
    features_only_.id.clear();
  }

  absl::StatusOr<LaterSeries> Read();

 private:
  absl::Status MatchColumns();
  absl::Status ReadBlocks();
  absl::Status AddBlock(const CsvRows& block);
  absl::Status CheckTargets() const;
  absl::Status CheckTimes() const;
  absl::Status CheckSeries() const;
  absl::Status CutSeries(size_t series, absl::Span<const uint32_t> rows);
  absl::Status CheckSteps(size_t series, absl::Span<const uint32_t> rows) const;
  void CopyRows();
  bool IsKnown(uint32_t row) const;
  std::string RowText(size_t series, uint32_t row) const;
  std::string TimeText(double time) const;
  std::string OfSeries(size_t series) const;

  const CsvFile& file_;
  const InputSchema& input_;
  const SeriesInput& series_;
  const SampleShape& shape_;
  InputSchema features_only_;
  TableFileHeader header_;
  std::unique_ptr<FeatureReader> features_;
  std::vector<size_t> target_at_;
  size_t time_at_ = 0, series_at_ = 0;
  ptrdiff_t id_at_ = kAbsent;

  // [row of the file]
  int64_t rows_ = 0;
  std::vector<NumberColumn> targets_;
  TimeColumn times_{series_.order};
  ColumnValues names_;
  TextRows ids_;
  std::vector<ColumnRows> cells_;  // [feature]
  std::vector<StrayTexts> strays_;

  std::vector<uint32_t> history_;
  std::vector<LaterRow> later_;
  LaterSeries result_;
};

std::string Reader::OfSeries(size_t series) const {
  return series_.series.empty() ? "" : absl::StrCat(" of series '", series_.names[series], "'");
}

std::string Reader::TimeText(double time) const {
  if (times_.date().row == 0) return absl::StrFormat("%.15g", time);
  const CalendarTime t = CalendarOf(time);
  std::string text = absl::StrFormat("%04d-%02d-%02d", t.year, t.month, t.day);
  const double seconds = time - std::floor(time / 60) * 60;
  if (t.hour == 0 && t.minute == 0 && seconds == 0) return text;
  absl::StrAppendFormat(&text, "T%02d:%02d:%02d", t.hour, t.minute, static_cast<int>(seconds));
  return text;
}

std::string Reader::RowText(size_t series, uint32_t row) const {
  return absl::StrCat(Place(file_.name, row + 1, series_.time), ": row ",
                      TimeText(times_.values()[row]), OfSeries(series));
}

absl::Status Reader::MatchColumns() {
  std::vector<std::string>& warnings = result_.rows.schema.warnings;
  RETURN_IF_ERROR(header_.Read(file_, warnings));
  for (const std::string& target : input_.targets) {
    ASSIGN_OR_RETURN(target_at_.emplace_back(),
                     header_.Require(target, "the target, whose past the models look at"));
  }
  ASSIGN_OR_RETURN(time_at_, header_.Require(series_.time, "the time"));
  if (!series_.series.empty()) {
    ASSIGN_OR_RETURN(series_at_, header_.Require(series_.series, "the series"));
    names_.dictionary.Unlimit();
    for (const std::string& name : series_.names) names_.dictionary.Code(name);
  }
  id_at_ = header_.Find(input_.id);
  ASSIGN_OR_RETURN(features_, FeatureReader::Match(features_only_, header_.names(), file_.name));
  std::vector<std::string> ignored;
  for (const std::string& name : features_->ignored()) {
    const auto at = static_cast<size_t>(header_.Find(name));
    const bool used = at == time_at_ || (!series_.series.empty() && at == series_at_);
    if (!used && name != input_.id) ignored.push_back(name);
  }
  if (!ignored.empty()) {
    warnings.push_back(
        absl::StrCat(file_.name, ": the models do not use these columns: ", NameColumns(ignored)));
  }
  return absl::OkStatus();
}

absl::Status Reader::AddBlock(const CsvRows& block) {
  const size_t columns = header_.names().size();
  const auto add = [&](auto& column, size_t at) {
    column.Add(block.fields() + at, columns, block.rows(), block.lines());
  };
  for (size_t k = 0; k < targets_.size(); ++k) add(targets_[k], target_at_[k]);
  add(times_, time_at_);
  if (!series_.series.empty()) {
    names_.AddTexts(block.fields() + series_at_, columns, block.rows());
  }
  for (size_t i = 0; i < block.rows() && id_at_ != kAbsent; ++i) {
    ids_.Add(block.fields()[i * columns + static_cast<size_t>(id_at_)]);
  }
  RETURN_IF_ERROR(features_->Read(block, rows_, cells_, &strays_));
  rows_ += static_cast<int64_t>(block.rows());
  return absl::OkStatus();
}

absl::Status Reader::ReadBlocks() {
  RETURN_IF_ERROR(ForEachBlock(header_.text(), header_.names().size(),
                               [this](const CsvRows& block) { return AddBlock(block); }));
  if (rows_ > 0) return features_->Check(strays_, result_.rows.schema.warnings);
  return absl::InvalidArgumentError(absl::StrCat(file_.name, ": there is no row below the header"));
}

absl::Status Reader::CheckTargets() const {
  for (size_t k = 0; k < targets_.size(); ++k) {
    const StrayTexts& texts = targets_[k].texts();
    const BadValue* bad = nullptr;
    if (texts.count > 0) bad = &texts.first.front();
    if (targets_[k].not_finite().row > 0) bad = &targets_[k].not_finite();
    if (bad == nullptr) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(Place(file_.name, bad->row, bad->line, input_.targets[k]), ": '", bad->text,
                     "' is not a finite number"));
  }
  return absl::OkStatus();
}

absl::Status Reader::CheckTimes() const {
  const BadValue* bad = nullptr;
  if (times_.text().row > 0) {
    bad = &times_.text();
  } else if (times_.number().row > 0 && times_.date().row > 0) {
    bad = times_.number().row > times_.date().row ? &times_.number() : &times_.date();
  }
  if (bad == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(Place(file_.name, bad->row, bad->line, series_.time), ": '", bad->text,
                   "' is not a time like those above it: all are dates or numbers"));
}

absl::Status Reader::CheckSeries() const {
  constexpr size_t kMostNamed = 8;
  for (size_t row = 0; row < names_.codes.size(); ++row) {
    const int32_t code = names_.codes[row];
    if (code < static_cast<int32_t>(series_.names.size())) continue;
    const size_t named = std::min(kMostNamed, series_.names.size());
    return absl::InvalidArgumentError(absl::StrCat(
        Place(file_.name, static_cast<int64_t>(row) + 1, series_.series), ": series '",
        names_.dictionary.values()[static_cast<size_t>(code)],
        "' is unknown: the models were trained on ", series_.names.size(), " series: '",
        absl::StrJoin(series_.names.begin(), series_.names.begin() + static_cast<ptrdiff_t>(named),
                      "', '"),
        named < series_.names.size() ? "', ..." : "'"));
  }
  return absl::OkStatus();
}

bool Reader::IsKnown(uint32_t row) const {
  return std::any_of(targets_.begin(), targets_.end(), [&](const NumberColumn& target) {
    return !std::isnan(target.numbers()[row]);
  });
}

absl::Status Reader::CheckSteps(size_t series, absl::Span<const uint32_t> rows) const {
  if (series_.step.unit == TimeStep::Unit::kNone) return absl::OkStatus();
  constexpr double kTolerance = 1e-6;
  for (size_t i = 1; i < rows.size(); ++i) {
    const double before = times_.values()[rows[i - 1]], time = times_.values()[rows[i]];
    const double expected = series_.step.After(before, 1);
    const double allowed = kTolerance * (expected - before);
    if (std::fabs(time - expected) <= allowed) continue;
    double next = expected;
    int64_t missing = 0;
    while (next < time - allowed) next = series_.step.After(before, ++missing + 1);
    const bool gap = missing > 0 && std::fabs(time - next) <= allowed;
    return absl::InvalidArgumentError(absl::StrCat(
        RowText(series, rows[i]), " comes after ", TimeText(before), ": ",
        gap ? absl::StrCat(missing, missing == 1 ? " row is" : " rows are", " missing between")
            : absl::StrCat("the rows of the training data have another step"),
        "; ", TimeText(expected), " is expected (the target may be empty there)"));
  }
  return absl::OkStatus();
}

// rows: those of the series, by time.
absl::Status Reader::CutSeries(size_t series, absl::Span<const uint32_t> rows) {
  if (rows.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckSteps(series, rows));
  size_t known = rows.size();
  while (known > 0 && !IsKnown(rows[known - 1])) --known;
  if (static_cast<int64_t>(known) < shape_.history()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_.name, ": the history", OfSeries(series), " is too short: ", known,
                     known == 1 ? " row" : " rows",
                     " up to the last known target, but the models need ", shape_.history(),
                     " (data.window ", shape_.window, " + data.horizon ", shape_.horizon, " - 1)"));
  }
  history_.insert(history_.end(), rows.begin(), rows.begin() + static_cast<ptrdiff_t>(known));
  for (size_t i = known; i < rows.size(); ++i) {
    later_.push_back({series, static_cast<int64_t>(rows[i]), times_.values()[rows[i]]});
  }
  if (known < rows.size()) return absl::OkStatus();
  if (series_.step.unit == TimeStep::Unit::kNone) {
    return absl::InvalidArgumentError(absl::StrCat(
        file_.name, ": no row", OfSeries(series),
        " is to be predicted: the rows of the training data are not evenly spaced, so add the rows "
        "that follow the history, with an empty target"));
  }
  for (int64_t i = 1; i <= shape_.horizon; ++i) {
    later_.push_back({series, -1, series_.step.After(times_.values()[rows.back()], i)});
  }
  return absl::OkStatus();
}

// Nothing is known of a row that is not in the file, except what its time tells.
void AddLater(const Column& column, const ColumnRows& cells, const LaterRow& row,
              const std::string& time, ColumnRows& out) {
  const auto at = static_cast<size_t>(row.file_row);
  if (column.kind == ColumnKind::kCategorical) {
    out.codes.push_back(row.file_row < 0 ? kMissingCode : cells.codes[at]);
  } else if (row.file_row >= 0) {
    out.numbers.push_back(cells.numbers[at]);
  } else if (column.date_part >= 0 && column.source == time) {
    out.numbers.push_back(DatePartOf(static_cast<size_t>(column.date_part), row.time));
  } else {
    out.numbers.push_back(std::nanf(""));
  }
}

void Reader::CopyRows() {
  TableRows& to = result_.rows;
  to.schema.train_rows = static_cast<int64_t>(history_.size());
  to.schema.test_rows = static_cast<int64_t>(later_.size());
  for (size_t f = 0; f < input_.features.size(); ++f) {
    ColumnRows& train = to.train.emplace_back(cells_[f]);
    ColumnRows& test = to.test.emplace_back();
    for (const LaterRow& row : later_) {
      AddLater(input_.features[f], cells_[f], row, series_.time, test);
    }
    if (!train.numbers.empty()) KeepRows(history_, train.numbers);
    if (!train.codes.empty()) KeepRows(history_, train.codes);
  }
  to.more_train_targets.resize(targets_.size() - 1);
  to.more_test_targets.resize(targets_.size() - 1);
  for (size_t k = 0; k < targets_.size(); ++k) {
    ColumnRows& target = k == 0 ? to.train_target : to.more_train_targets[k - 1];
    target.numbers = std::move(targets_[k].numbers());
    KeepRows(history_, target.numbers);
  }
  for (const uint32_t row : history_) to.times.push_back(times_.values()[row]);
  for (const LaterRow& row : later_) {
    if (id_at_ != kAbsent && row.file_row >= 0) {
      result_.ids.Add(ids_[static_cast<size_t>(row.file_row)]);
      continue;
    }
    const std::string name =
        series_.series.empty() ? "" : absl::StrCat(series_.names[row.series], " ");
    result_.ids.Add(absl::StrCat(name, TimeText(row.time)));
  }
}

absl::StatusOr<LaterSeries> Reader::Read() {
  RETURN_IF_ERROR(MatchColumns());
  RETURN_IF_ERROR(ReadBlocks());
  RETURN_IF_ERROR(CheckTargets());
  RETURN_IF_ERROR(CheckTimes());
  RETURN_IF_ERROR(CheckSeries());
  RowOrderSource source;
  source.file = file_.name;
  source.time = series_.time;
  source.series = series_.series;
  source.times = times_.values();
  source.series_of = names_.codes;
  source.names = series_.names;
  TableSchema& schema = result_.rows.schema;
  ASSIGN_OR_RETURN(const RowOrder order, OrderRows(source, schema.warnings));
  WarnOfZones(file_.name, series_.time, times_, nullptr, schema.warnings);
  size_t begin = 0;
  for (size_t s = 0; s < order.ends.size(); ++s) {
    const auto end = static_cast<size_t>(order.ends[s]);
    RETURN_IF_ERROR(CutSeries(s, absl::MakeConstSpan(order.rows).subspan(begin, end - begin)));
    begin = end;
    result_.rows.series_ends.push_back(history_.size());
    result_.rows.test_series_ends.push_back(later_.size());
  }
  schema.features = input_.features;
  schema.target = input_.targets[0];
  schema.more_targets.assign(input_.targets.begin() + 1, input_.targets.end());
  schema.target_kind = TargetKind::kValue;
  schema.ordered = true;
  schema.series = series_.names;
  CopyRows();
  result_.id = !input_.id.empty()       ? input_.id
               : series_.series.empty() ? series_.time
                                        : absl::StrCat(series_.series, " ", series_.time);
  return std::move(result_);
}

}  // namespace

absl::StatusOr<LaterSeries> ReadLaterSeries(const CsvFile& file, const InputSchema& input,
                                            const SeriesInput& series, const SampleShape& shape) {
  return Reader(file, input, series, shape).Read();
}

}  // namespace traind
