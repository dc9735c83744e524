#include "common/data/table/train_file.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/suggest.h"
#include "common/data/table/csv.h"
#include "common/data/table/decimal_commas.h"
#include "common/data/table/number.h"
#include "common/data/table/row_order.h"
#include "common/data/table/time_warnings.h"
#include "common/data/table/total_row.h"

namespace traind {

absl::Status TableFileHeader::Read(const CsvFile& file, std::vector<std::string>& warnings) {
  warnings.insert(warnings.end(), file.warnings.begin(), file.warnings.end());
  text_.name = file.name;
  text_.bytes = file.bytes;
  if (IsArrayFile(file.bytes)) {
    ASSIGN_OR_RETURN(text_.arrays, ArrayFile::Open(file.bytes, file.name));
    text_.header = text_.arrays->columns();
  } else {
    ASSIGN_OR_RETURN(text_.header, ReadCsvHeader(file.bytes, file.name, &repeated_));
    text_.delimiter = DelimiterOf(file.bytes, file.name);
    if (auto points = WithDecimalPoints(file.bytes, text_.delimiter)) {
      text_.rewritten = std::make_shared<const std::string>(std::move(points->bytes));
      text_.bytes = *text_.rewritten;
      warnings.push_back(absl::StrCat(file.name, ": numbers have decimal commas, such as '",
                                      points->first, "'; points separate thousands"));
    }
  }
  std::vector<std::string> unnamed;
  for (size_t i = 0; i < names().size(); ++i) {
    places_[names()[i]] = static_cast<ptrdiff_t>(i);
    if (names()[i] == UnnamedColumn(i)) unnamed.push_back(names()[i]);
  }
  if (!unnamed.empty()) {
    warnings.push_back(absl::StrCat(file.name,
                                    ": some columns have no name in the header; they are called ",
                                    NameColumns(unnamed)));
  }
  if (!repeated_.empty()) {
    warnings.push_back(absl::StrCat(file.name, ": several columns have the same name, ",
                                    NameColumns(repeated_), "; the later ones are called '",
                                    repeated_[0], ".1' and so on"));
  }
  if (text_.arrays != nullptr) return absl::OkStatus();
  if (!file.checked) {
    RETURN_IF_ERROR(CheckCsvText(text_.bytes, file.name, text_.delimiter, names()));
  }
  CsvReader reader(text_.bytes, file.name, text_.delimiter);
  RETURN_IF_ERROR(reader.Next().status());
  text_.first = reader.place();
  return absl::OkStatus();
}

void TableFileHeader::LeaveOutTotals(std::vector<std::string>& warnings) {
  const std::optional<TotalRow> row = FindTotalRow(text_);
  if (!row) return;
  warnings.push_back(row->warning);
  if (row->certain) text_.bytes = text_.bytes.substr(0, row->at);
}

ptrdiff_t TableFileHeader::Find(const std::string& name) const {
  const auto it = places_.find(name);
  return name.empty() || it == places_.end() ? kAbsent : it->second;
}

absl::StatusOr<size_t> TableFileHeader::Require(const std::string& name,
                                                absl::string_view role) const {
  const ptrdiff_t at = Find(name);
  if (std::find(repeated_.begin(), repeated_.end(), name) != repeated_.end()) {
    const absl::Status status = RepeatedColumn(text_.name, name);
    return absl::InvalidArgumentError(absl::StrCat(status.message(), " (", role, ")"));
  }
  if (at != kAbsent) return static_cast<size_t>(at);
  std::string hint = DidYouMean(name, names());
  if (hint.empty() && names().size() == 1) {
    hint = absl::StrCat("; its one column is '", names()[0], "': ", kDelimiterHint);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(text_.name, ": there is no column '", name, "' (", role, ")", hint));
}

TrainFile::TrainFile(const TableSource& source) : source_(source) {
  targets_.emplace_back(source.train.name, source.target, source.target_kind);
  for (const std::string& name : source.more_targets) {
    targets_.emplace_back(source.train.name, name, source.target_kind);
  }
}

bool TrainFile::HasOtherRole(const std::string& name) const {
  const auto& more = source_.more_targets;
  const auto& texts = source_.text_columns;
  return std::find(texts.begin(), texts.end(), name) != texts.end() || name == source_.target ||
         name == source_.id || name == source_.group || name == source_.fold_column ||
         std::find(more.begin(), more.end(), name) != more.end();
}

absl::Status TrainFile::GiveRoles() {
  const std::string& file = source_.train.name;
  for (const TargetColumn& target : targets_) {
    ASSIGN_OR_RETURN(const size_t at, header_.Require(target.name(), "the target"));
    target_at_.push_back(at);
  }
  const ptrdiff_t id_at = header_.Find(source_.id);
  if (!source_.id.empty() && source_.test.name.empty()) {
    RETURN_IF_ERROR(header_.Require(source_.id, "the id").status());
  }
  columns_ = std::make_unique<FileColumns>(header_.names().size());
  features_ = std::make_unique<FeatureColumns>(file, header_.names(), *columns_);
  for (size_t i = 0; i < targets_.size(); ++i) {
    columns_->Use(target_at_[i], targets_[i].use());
    features_->Skip(target_at_[i]);
  }
  const auto give = [&](const std::string& name, absl::string_view role, ColumnUse use,
                        ptrdiff_t& place) -> absl::Status {
    if (name.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const size_t at, header_.Require(name, role));
    columns_->Use(at, use);
    place = static_cast<ptrdiff_t>(at);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(give(source_.time, "the time", ColumnUse::kTimes, time_at_));
  RETURN_IF_ERROR(give(source_.series, "the series", ColumnUse::kKeys, series_at_));
  RETURN_IF_ERROR(give(source_.group, "the group", ColumnUse::kKeys, group_at_));
  RETURN_IF_ERROR(give(source_.fold_column, "the fold", ColumnUse::kKeys, fold_at_));
  for (const ptrdiff_t at : {group_at_, fold_at_}) {
    if (at != kAbsent) features_->Skip(static_cast<size_t>(at));
  }
  if (id_at != kAbsent) {
    RETURN_IF_ERROR(header_.Require(source_.id, "the id").status());
    if (id_at == time_at_ || id_at == series_at_ || id_at == group_at_) {
      features_->Skip(static_cast<size_t>(id_at));
    } else {
      columns_->Use(static_cast<size_t>(id_at), ColumnUse::kSkipped);
    }
  }
  for (const std::string& name : source_.text_columns) {
    ASSIGN_OR_RETURN(text_at_.emplace_back(), header_.Require(name, "the text"));
    columns_->Use(text_at_.back(), ColumnUse::kKeys);
    features_->Skip(text_at_.back());
  }
  if (source_.history || !text_at_.empty()) features_->MayBeNone();
  if (!source_.text_features) features_->NoTextFeatures();
  return absl::OkStatus();
}

absl::Status TrainFile::CheckTargets() const {
  absl::Status first;
  for (size_t i = 0; i < targets_.size() && first.ok(); ++i) {
    first = targets_[i].Check(columns_->values(target_at_[i]));
  }
  return first;
}

absl::Status TrainFile::Read(std::vector<std::string>& warnings) {
  RETURN_IF_ERROR(header_.Read(source_.train, warnings));
  header_.LeaveOutTotals(warnings);
  RETURN_IF_ERROR(GiveRoles());
  return columns_->Read(header_.text(), source_.threads, [this] { return CheckTargets(); });
}

std::vector<std::string> TrainFile::OpenDates() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < columns_->size(); ++i) {
    const bool dates = columns_->use(i) == ColumnUse::kTimes;
    if (dates && columns_->values(i).times.open()) names.push_back(header_.names()[i]);
  }
  return names;
}

DateOrder TrainFile::DateOrderOf(const std::string& name) const {
  return columns_->values(static_cast<size_t>(header_.Find(name))).times.order();
}

absl::Status TrainFile::TurnDates(const std::vector<std::string>& names) {
  std::vector<size_t> columns;
  for (const std::string& name : names) {
    columns.push_back(static_cast<size_t>(header_.Find(name)));
  }
  if (columns.empty()) return absl::OkStatus();
  return columns_->Turn(header_.text(), source_.threads, columns);
}

absl::StatusOr<std::vector<uint32_t>> TrainFile::RowsWithTargets(TableSchema& schema) const {
  const auto all = static_cast<size_t>(columns_->rows());
  std::vector<bool> whole(all, true);
  std::string lacking;
  for (size_t i = 0; i < targets_.size(); ++i) {
    ASSIGN_OR_RETURN(const std::vector<bool> present,
                     targets_[i].Present(columns_->values(target_at_[i])));
    for (size_t row = 0; row < all; ++row) {
      if (!present[row]) whole[row] = false;
    }
    absl::StrAppend(&lacking, i == 0 ? "" : "' or '", targets_[i].name());
  }
  std::vector<uint32_t> rows;
  for (size_t row = 0; row < all; ++row) {
    if (whole[row]) rows.push_back(static_cast<uint32_t>(row));
  }
  if (rows.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(source_.train.name, ": no row has all of its targets '", lacking, "'"));
  }
  if (rows.size() < all) {
    schema.warnings.push_back(absl::StrCat(
        source_.train.name, ": ", all - rows.size(), " of ", all, " rows ",
        source_.history ? "are history alone" : "left out", ": target '", lacking, "' is missing"));
  }
  if (!source_.history) return rows;
  rows.resize(all);
  std::iota(rows.begin(), rows.end(), uint32_t{0});
  return rows;
}

absl::Status TrainFile::CheckTimes() const {
  const TimeColumn& times = columns_->values(static_cast<size_t>(time_at_)).times;
  const std::string& file = source_.train.name;
  if (const BadValue& bad = times.text(); bad.row > 0) {
    return absl::InvalidArgumentError(absl::StrCat(Place(file, bad.row, bad.line, source_.time),
                                                   ": '", bad.text,
                                                   "' is neither a date nor a number"));
  }
  if (times.number().row > 0 && times.date().row > 0) {
    const BadValue& later = times.number().row > times.date().row ? times.number() : times.date();
    return absl::InvalidArgumentError(absl::StrCat(
        Place(file, later.row, later.line, source_.time), ": '", later.text,
        "': the rows above have ", &later == &times.date() ? "numbers" : "dates", " there"));
  }
  return absl::OkStatus();
}

// Sorts the rows by series and time.
absl::Status TrainFile::OrderByTime(TableRows& rows, std::vector<uint32_t>& kept) {
  RETURN_IF_ERROR(CheckTimes());
  ColumnValues& column = columns_->values(static_cast<size_t>(time_at_));
  times_are_dates_ = column.times.date().row > 0;
  rows.schema.time_order = column.times.order();
  if (const BadValue& written = column.times.written(); written.row > 0) {
    rows.schema.warnings.push_back(
        WrittenDatesWarning(source_.train.name, source_.time, written.text, column.times.order()));
  }
  RowOrderSource source;
  source.file = source_.train.name;
  source.time = source_.time;
  source.series = source_.series;
  for (const uint32_t row : kept) source.times.push_back(column.times.values()[row]);
  if (series_at_ != kAbsent) {
    const ColumnValues& series = columns_->values(static_cast<size_t>(series_at_));
    source.names.clear();
    for (const absl::string_view name : series.dictionary.values()) source.names.emplace_back(name);
    for (const uint32_t row : kept) source.series_of.push_back(series.codes[row]);
  }
  source.file_rows = kept;
  ASSIGN_OR_RETURN(RowOrder order, OrderRows(source, rows.schema.warnings));
  for (uint32_t& row : order.rows) {
    rows.times.push_back(source.times[row]);
    row = kept[row];
  }
  kept = std::move(order.rows);
  rows.schema.ordered = true;
  rows.schema.series = std::move(source.names);
  rows.series_ends = std::move(order.ends);
  WarnOfZones(source_.train.name, source_.time, column.times, nullptr, rows.schema.warnings);
  if (source_.history) {
    const OrderedTimes ordered = {
        source_.train.name, source_.time, times_are_dates_, rows.times, rows.series_ends, {}, kept};
    usual_step_ = UsualStep(ordered);
    WarnOfSteps(ordered, usual_step_, source_.train.name, rows.schema.warnings);
  }
  if (times_are_dates_) {
    features_->OnlyCycles(static_cast<size_t>(time_at_));
  } else {
    features_->Skip(static_cast<size_t>(time_at_));
  }
  return absl::OkStatus();
}

void TrainFile::CopyTexts(const std::vector<uint32_t>& kept, TableRows& rows) const {
  for (const size_t at : text_at_) {
    const ColumnValues& column = columns_->values(at);
    TextRows& texts = rows.train_texts.emplace_back();
    for (const uint32_t row : kept) {
      const int32_t code = column.codes[row];
      texts.Add(code < 0 ? "" : column.dictionary.values()[static_cast<size_t>(code)]);
    }
  }
}

absl::Status TrainFile::ReadGroups(const std::vector<uint32_t>& kept, TableRows& rows) {
  const ColumnValues& column = columns_->values(static_cast<size_t>(group_at_));
  for (const uint32_t row : kept) {
    if (column.codes[row] < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          Place(source_.train.name, row + 1, source_.group), ": the group is missing"));
    }
    rows.groups.push_back(column.codes[row]);
  }
  return absl::OkStatus();
}

// Folds are numbered in the order of the values in their column: by number if all are numbers, else
// by text. A row with a blank or -1 is validated by no fold.
absl::Status TrainFile::ReadGivenFolds(const std::vector<uint32_t>& kept, TableRows& rows) {
  const ColumnValues& column = columns_->values(static_cast<size_t>(fold_at_));
  const std::vector<absl::string_view>& values = column.dictionary.values();
  std::vector<float> numbers(values.size());
  bool numeric = true;
  for (size_t i = 0; i < values.size(); ++i) {
    numeric &= ParseNumber(values[i], numbers[i]) == NumberKind::kNumber;
  }
  std::vector<size_t> order;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!numeric || numbers[i] != -1) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (numeric && numbers[a] != numbers[b]) return numbers[a] < numbers[b];
    return values[a] < values[b];
  });
  std::vector<int32_t> fold_of(values.size(), -1);
  for (size_t fold = 0; fold < order.size(); ++fold) {
    fold_of[order[fold]] = static_cast<int32_t>(fold);
  }
  for (const uint32_t row : kept) {
    const int32_t code = column.codes[row];
    rows.given_folds.push_back(code < 0 ? -1 : fold_of[static_cast<size_t>(code)]);
  }
  return absl::OkStatus();
}

absl::Status TrainFile::Finish(TableRows& rows) {
  TableSchema& schema = rows.schema;
  schema.target = source_.target;
  schema.more_targets = source_.more_targets;
  schema.target_kind = source_.target_kind;
  schema.id = source_.id;
  ASSIGN_OR_RETURN(std::vector<uint32_t> kept, RowsWithTargets(schema));
  if (time_at_ != kAbsent) RETURN_IF_ERROR(OrderByTime(rows, kept));
  schema.text_columns = source_.text_columns;
  CopyTexts(kept, rows);
  if (group_at_ != kAbsent) RETURN_IF_ERROR(ReadGroups(kept, rows));
  if (fold_at_ != kAbsent) RETURN_IF_ERROR(ReadGivenFolds(kept, rows));
  schema.train_rows = static_cast<int64_t>(kept.size());
  rows.more_train_targets.resize(schema.more_targets.size());
  for (size_t i = 0; i < targets_.size(); ++i) {
    RETURN_IF_ERROR(
        targets_[i].Finish(kept, columns_->values(target_at_[i]), schema.classes,
                           i == 0 ? rows.train_target : rows.more_train_targets[i - 1]));
  }
  if (targets_[0].LooksLikeRegression()) {
    schema.warnings.push_back(absl::StrCat(
        source_.train.name, ": target '", targets_[0].name(), "' has ", targets_[0].classes(),
        " classes, and all of them are numbers; should task.type be regression?"));
  }
  if (const std::string pair = targets_[0].ClassesOfOneWord(); !pair.empty()) {
    schema.warnings.push_back(absl::StrCat(source_.train.name, ": target '", targets_[0].name(),
                                           "' has the classes ", pair,
                                           ", which differ in letter case alone"));
  }
  return features_->Finish(kept, schema.features, rows.train, schema.warnings);
}

}  // namespace traind
