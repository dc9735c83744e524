#include "common/data/table/test_file.h"

#include <absl/container/flat_hash_map.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/suggest.h"
#include "common/data/table/time_warnings.h"

namespace traind {

absl::Status TestFile::MatchRoles() {
  for (const std::string& name : source_.text_columns) {
    ASSIGN_OR_RETURN(text_at_.emplace_back(), header_.Require(name, "the text"));
  }
  if (!source_.id.empty()) {
    ASSIGN_OR_RETURN(const size_t at, header_.Require(source_.id, "the id"));
    id_at_ = static_cast<ptrdiff_t>(at);
  }
  if (!source_.time.empty()) {
    ASSIGN_OR_RETURN(const size_t at, header_.Require(source_.time, "the time"));
    time_at_ = static_cast<ptrdiff_t>(at);
    times_ = TimeColumn(train_.time_order());
  }
  if (!source_.series.empty()) {
    ASSIGN_OR_RETURN(const size_t at, header_.Require(source_.series, "the series"));
    series_at_ = static_cast<ptrdiff_t>(at);
  }
  return absl::OkStatus();
}

absl::Status TestFile::MatchColumns(TableRows& rows) {
  const std::string& file = source_.test.name;
  RETURN_IF_ERROR(MatchRoles());
  bool all_targets = true;
  for (const TargetColumn& target : train_.targets()) {
    target_at_.push_back(header_.Find(target.name()));
    if (target_at_.back() != kAbsent) {
      RETURN_IF_ERROR(header_.Require(target.name(), "the target").status());
    }
    all_targets &= target_at_.back() != kAbsent;
    targets_.emplace_back(file, target);
  }
  // The test file must have all targets to be scored.
  rows.schema.test_has_target = all_targets;
  const std::vector<size_t> places = train_.features().Places();
  std::vector<std::string> missing;
  for (size_t i = 0; i < train_.header().names().size(); ++i) {
    const std::string& name = train_.header().names()[i];
    if (train_.HasOtherRole(name) || header_.Find(name) != kAbsent) continue;
    // Delimiters at the end of each line make such a column, which no model needs.
    const bool needed = std::find(places.begin(), places.end(), i) != places.end();
    if (needed || name != UnnamedColumn(i)) missing.push_back(name);
  }
  if (!missing.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": ", NameColumns(missing), " of ", source_.train.name,
                     missing.size() == 1 ? " is missing" : " are missing",
                     DidYouMean(missing[0], header_.names())));
  }
  std::vector<std::string> extra;
  for (const std::string& name : header_.names()) {
    if (!train_.HasOtherRole(name) && train_.header().Find(name) == kAbsent) extra.push_back(name);
  }
  if (!extra.empty()) {
    rows.schema.warnings.push_back(
        absl::StrCat(file, ": ", NameColumns(extra), " ignored: not in ", source_.train.name));
  }
  for (const size_t at : places) {
    feature_at_.push_back(static_cast<size_t>(header_.Find(train_.header().names()[at])));
  }
  return absl::OkStatus();
}

absl::Status TestFile::AddBlock(const CsvRows& block, TableRows& rows) {
  const size_t columns = header_.names().size();
  const int64_t before = rows.schema.test_rows;
  for (size_t i = 0; i < block.rows(); ++i) {
    const absl::string_view* const fields = block.fields() + i * columns;
    const int64_t row = before + static_cast<int64_t>(i) + 1;
    for (size_t k = 0; k < targets_.size() && rows.schema.test_has_target; ++k) {
      targets_[k].Add(fields[target_at_[k]], row, block.lines()[i],
                      k == 0 ? rows.test_target : rows.more_test_targets[k - 1]);
    }
    if (id_at_ != kAbsent) rows.test_ids.Add(fields[id_at_]);
    for (size_t k = 0; k < text_at_.size(); ++k) {
      const absl::string_view text = fields[text_at_[k]];
      rows.test_texts[k].Add(IsMissingValue(text) ? "" : text);
    }
  }
  if (time_at_ != kAbsent)
    times_.Add(block.fields() + time_at_, columns, block.rows(), block.lines());
  if (series_at_ != kAbsent) series_.AddTexts(block.fields() + series_at_, columns, block.rows());
  RETURN_IF_ERROR(train_.features().AddTestRows(block, columns, feature_at_, source_.test.name,
                                                before, rows.test, strays_));
  rows.schema.test_rows += static_cast<int64_t>(block.rows());
  return absl::OkStatus();
}

// Checks that a series' test rows are later than its training rows.
absl::Status TestFile::CheckFollows(const TableRows& rows, const RowOrder& order,
                                    const RowOrderSource& ordered) const {
  uint64_t train_begin = 0, test_begin = 0;
  for (size_t s = 0; s < order.ends.size(); ++s) {
    const uint64_t train_end = rows.series_ends[s];
    if (train_end > train_begin && order.ends[s] > test_begin) {
      const uint32_t first = order.rows[test_begin];
      if (ordered.times[first] <= rows.times[train_end - 1]) {
        return absl::InvalidArgumentError(absl::StrCat(
            Place(ordered.file, static_cast<int64_t>(first) + 1, source_.time),
            ": not later than the last row of ", source_.train.name,
            source_.series.empty() ? "" : absl::StrCat(" of series '", ordered.names[s], "'")));
      }
    }
    train_begin = train_end;
    test_begin = order.ends[s];
  }
  return absl::OkStatus();
}

// Also of the step from a series' last training row to its first test row.
void TestFile::WarnOfStepsBehind(const RowOrderSource& source, const RowOrder& order,
                                 TableRows& rows) const {
  std::vector<double> times;
  for (const uint32_t row : order.rows) times.push_back(source.times[row]);
  OrderedTimes ordered = {source.file, source.time, train_.times_are_dates(), times, order.ends,
                          {},          order.rows};
  uint64_t begin = 0;
  for (const uint64_t end : rows.series_ends) {
    ordered.before.push_back(end > begin ? rows.times[end - 1] : std::nan(""));
    begin = end;
  }
  WarnOfSteps(ordered, train_.usual_step(), source_.train.name, rows.schema.warnings);
}

absl::Status TestFile::OrderByTime(TableRows& rows) {
  const std::string& file = source_.test.name;
  const BadValue& other = train_.times_are_dates() ? times_.number() : times_.date();
  const absl::string_view kind = train_.times_are_dates() ? "date" : "number";
  for (const BadValue* bad : {&times_.text(), &other}) {
    if (bad->row == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(Place(file, bad->row, bad->line, source_.time),
                                                   ": '", bad->text, "' is not a ", kind, ", but ",
                                                   source_.train.name, " has ", kind, "s there"));
  }
  RowOrderSource source;
  source.file = file;
  source.time = source_.time;
  source.series = source_.series;
  source.times = std::move(times_.values());
  if (series_at_ != kAbsent) {
    // Series that only the test file has come after the others.
    source.names.clear();
    for (const absl::string_view name : series_.dictionary.values())
      source.names.emplace_back(name);
    source.series_of = std::move(series_.codes);
    rows.series_ends.resize(source.names.size(), rows.series_ends.back());
  }
  ASSIGN_OR_RETURN(RowOrder order, OrderRows(source, rows.schema.warnings));
  RETURN_IF_ERROR(CheckFollows(rows, order, source));
  WarnOfZones(file, source_.time, times_, &train_.times(), rows.schema.warnings);
  if (source_.history) WarnOfStepsBehind(source, order, rows);
  rows.schema.series = std::move(source.names);
  rows.test_series_ends = std::move(order.ends);
  for (ColumnRows& column : rows.test) {
    if (!column.numbers.empty()) KeepRows(order.rows, column.numbers);
    if (!column.codes.empty()) KeepRows(order.rows, column.codes);
  }
  if (rows.schema.test_has_target) {
    if (!rows.test_target.numbers.empty()) KeepRows(order.rows, rows.test_target.numbers);
    if (!rows.test_target.codes.empty()) KeepRows(order.rows, rows.test_target.codes);
    for (ColumnRows& target : rows.more_test_targets) KeepRows(order.rows, target.numbers);
  }
  for (TextRows& texts : rows.test_texts) texts = texts.InOrder(order.rows);
  if (!std::is_sorted(order.rows.begin(), order.rows.end())) {
    rows.test_order.assign(order.rows.begin(), order.rows.end());
  }
  return absl::OkStatus();
}

void TestFile::WarnOfDoubledIds(TableRows& rows) const {
  absl::flat_hash_map<absl::string_view, int64_t> first_rows;
  int64_t doubled = 0;
  std::string example;
  for (int64_t row = 0; row < rows.schema.test_rows; ++row) {
    const absl::string_view id = rows.test_ids[static_cast<size_t>(row)];
    const auto [it, inserted] = first_rows.emplace(id, row);
    if (inserted || ++doubled > 1) continue;
    example =
        absl::StrCat("'", id.substr(0, 64), "' stands in rows ", it->second + 1, " and ", row + 1);
  }
  if (doubled == 0) return;
  rows.schema.warnings.push_back(
      absl::StrCat(source_.test.name, ": column '", source_.id, "': ", doubled,
                   doubled == 1 ? " id repeats" : " ids repeat", " an earlier one: ", example));
}

absl::Status TestFile::Open() { return header_.Read(source_.test, header_warnings_); }

std::vector<std::string> TestFile::DatesToTurn() const {
  // How many rows are a date only in the order of the training file, or only in the other one.
  struct Open {
    std::string name;
    size_t at;
    DateOrder order;
    int64_t as_read = 0, turned = 0;
  };
  std::vector<Open> dates;
  for (const std::string& name : train_.OpenDates()) {
    const ptrdiff_t at = header_.Find(name);
    if (at != kAbsent) dates.push_back({name, static_cast<size_t>(at), train_.DateOrderOf(name)});
  }
  std::vector<std::string> names;
  if (dates.empty()) return names;
  const size_t columns = header_.names().size();
  // What is wrong with the file is reported when it is read as a whole.
  ForEachBlock(header_.text(), columns, [&](const CsvRows& block) {
    for (Open& column : dates) {
      for (size_t i = 0; i < block.rows(); ++i) {
        const absl::string_view text = block.fields()[i * columns + column.at];
        double ignored;
        const bool as_read = ParseTime(text, column.order, ignored);
        const bool turned = ParseTime(text, OtherOrder(column.order), ignored);
        column.as_read += as_read && !turned;
        column.turned += turned && !as_read;
      }
    }
    return absl::OkStatus();
  }).IgnoreError();
  for (const Open& column : dates) {
    if (column.turned > column.as_read) names.push_back(column.name);
  }
  return names;
}

absl::Status TestFile::Read(TableRows& rows) {
  const CsvFile& file = source_.test;
  rows.schema.warnings.insert(rows.schema.warnings.end(), header_warnings_.begin(),
                              header_warnings_.end());
  RETURN_IF_ERROR(MatchColumns(rows));
  if (series_at_ != kAbsent) {
    series_.dictionary.Unlimit();
    for (const std::string& name : rows.schema.series) series_.dictionary.Code(name);
  }
  RETURN_IF_ERROR(ForEachBlock(header_.text(), header_.names().size(),
                               [&](const CsvRows& block) { return AddBlock(block, rows); }));
  if (rows.schema.test_rows == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.name, ": there is no row below the header"));
  }
  RETURN_IF_ERROR(train_.features().CheckTestRows(file.name, strays_, rows.schema.warnings));
  // Times may repeat from series to series, so they are not checked as ids.
  if (id_at_ != kAbsent && id_at_ != time_at_) WarnOfDoubledIds(rows);
  if (time_at_ != kAbsent) RETURN_IF_ERROR(OrderByTime(rows));
  for (const TestTarget& target : targets_) target.Finish(rows.schema.warnings);
  return absl::OkStatus();
}

}  // namespace traind
