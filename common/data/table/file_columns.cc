#include "common/data/table/file_columns.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>

#include <algorithm>
#include <cmath>

#include "common/base/status_macros.h"
#include "common/data/table/csv_chunks.h"
#include "common/data/table/date_text.h"
#include "common/data/table/number.h"

namespace traind {
namespace {

// Columns that are text in the first rows need not be read as numbers first.
constexpr size_t kLookRows = 200;
constexpr size_t kMostReserved = 16 << 20;
// The number of fields that are read at a time, column by column, while they stay in the cache.
constexpr size_t kBlockFields = 2048;
constexpr size_t kLeastBlockRows = 16;

// InvalidArgument: the first text is a number with a decimal comma, as is usual in files with
// semicolons.
absl::Status CheckDecimalPoints(const CsvText& file, size_t column, const StrayTexts& texts) {
  if (file.delimiter != ';' || texts.count == 0) return absl::OkStatus();
  const BadValue& first = texts.first.front();
  float ignored;
  if (!absl::StrContains(first.text, ',') ||
      ParseNumber(absl::StrReplaceAll(first.text, {{",", "."}}), ignored) != NumberKind::kNumber) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      file.name, ": row ", first.row, " (line ", first.line, "), column '", file.header[column],
      "': '", first.text, "' has a decimal comma; numbers need a decimal point"));
}

bool OneDayOfMonth(const TimeColumn& times) {
  int day = 0;
  for (const double time : times.values()) {
    if (std::isnan(time)) continue;
    const int here = CalendarOf(time).day;
    if (day != 0 && here != day) return false;
    day = here;
  }
  return day != 0;
}

// The first rows of a column as times, in the order of day and month that fits them.
TimeColumn TimesOf(const CsvRows& rows, size_t column, size_t columns) {
  TimeColumn month_first(DateOrder::kMonthFirst), day_first(DateOrder::kDayFirst);
  for (TimeColumn* times : {&month_first, &day_first}) {
    times->Add(rows.fields() + column, columns, rows.rows(), rows.lines());
  }
  const int64_t as_month = month_first.texts().count, as_day = day_first.texts().count;
  const bool turned = as_day < as_month || (as_day == as_month && OneDayOfMonth(day_first) &&
                                            !OneDayOfMonth(month_first));
  return turned ? day_first : month_first;
}

}  // namespace

size_t BlockRows(size_t columns) { return std::max(kLeastBlockRows, kBlockFields / columns); }

absl::Status BlockReader::Next(size_t max_rows, CsvRows& rows) {
  if (file_.arrays == nullptr) {
    return csv_.NextRows(file_.header, file_.bytes.size(), max_rows, rows);
  }
  const auto wanted = static_cast<int64_t>(max_rows - std::min(max_rows, rows.rows()));
  const int64_t end = std::min(row_ + wanted, file_.arrays->rows());
  file_.arrays->Append(row_, end, rows);
  row_ = end;
  return absl::OkStatus();
}

void FileColumns::Use(size_t column, ColumnUse use) {
  columns_[column].use = use;
  columns_[column].fixed = true;
}

// Returns an estimate of the number of rows; 0: there are none.
absl::StatusOr<size_t> FileColumns::Look(const CsvText& file) {
  BlockReader reader(file);
  CsvRows rows;
  // An error below the examined rows is reported later, when they are read.
  const absl::Status status = reader.Next(kLookRows, rows);
  if (rows.rows() == 0) return status.ok() ? absl::StatusOr<size_t>(size_t{0}) : status;
  for (size_t i = 0; i < columns_.size(); ++i) {
    FileColumn& column = columns_[i];
    if (column.fixed && column.use != ColumnUse::kTimes) continue;
    if (!column.fixed) {
      NumberColumn numbers;
      numbers.Add(rows.fields() + i, columns_.size(), rows.rows(), rows.lines());
      RETURN_IF_ERROR(CheckDecimalPoints(file, i, numbers.texts()));
      // A column with some texts is read as numbers until all rows are read and its texts are
      // counted.
      if (numbers.texts().count <= numbers.texts().numbers) continue;
    }
    const TimeColumn times = TimesOf(rows, i, columns_.size());
    column.values.times = TimeColumn(times.order());
    if (column.fixed) continue;
    const bool dates = times.texts().Few() && times.number().row == 0;
    column.use = dates ? ColumnUse::kTimes : ColumnUse::kText;
  }
  if (file.arrays != nullptr) return static_cast<size_t>(file.arrays->rows());
  // The estimate assumes that all rows are as long as these; a tenth more spares most files a
  // second allocation.
  const size_t bytes_of_row = (reader.position() - file.first.at) / rows.rows() + 1;
  const size_t likely = (file.bytes.size() - file.first.at) / bytes_of_row * 11 / 10 + rows.rows();
  return std::min(likely, kMostReserved);
}

// Prepares a part for rows of this file: no rows, and dates in the order of its columns.
void FileColumns::EmptyPart(Part& part) const {
  part.rows = 0;
  part.columns.resize(columns_.size());
  for (size_t i = 0; i < columns_.size(); ++i) {
    part.columns[i].Clear();
    part.columns[i].times = TimeColumn(values(i).times.order());
  }
}

void FileColumns::ParseBlock(const std::vector<ColumnUse>& uses, Part& part) {
  const size_t width = uses.size();
  const size_t rows = part.block.rows();
  const absl::string_view* const fields = part.block.fields();
  for (size_t i = 0; i < width; ++i) {
    ColumnValues& column = part.columns[i];
    switch (uses[i]) {
      case ColumnUse::kSkipped:
        break;
      case ColumnUse::kNumbers:
        column.numbers.Add(fields + i, width, rows, part.block.lines());
        break;
      case ColumnUse::kTimes:
        column.times.Add(fields + i, width, rows, part.block.lines());
        break;
      case ColumnUse::kKeys:
      case ColumnUse::kText:
        // A part is small. Values are counted up to the limit where parts are joined, so which ones
        // they are does not depend on the number of threads.
        column.dictionary.Unlimit();
        column.AddTexts(fields + i, width, rows);
        break;
    }
  }
  part.rows += rows;
}

absl::Status FileColumns::ParsePart(const CsvText& file, const std::vector<ColumnUse>& uses,
                                    CsvReader& reader, size_t stop, Part& part) const {
  EmptyPart(part);
  const size_t block_rows = BlockRows(uses.size());
  absl::Status status;
  do {
    part.block.Clear();
    status = reader.NextRows(file.header, stop, block_rows, part.block);
    ParseBlock(uses, part);
  } while (status.ok() && part.block.rows() == block_rows);
  return status;
}

absl::Status FileColumns::ReadArrays(const CsvText& file, const std::vector<ColumnUse>& uses,
                                     const std::function<absl::Status()>& check) {
  BlockReader reader(file);
  const size_t block_rows = BlockRows(uses.size());
  Part part;
  do {
    EmptyPart(part);
    part.block.Clear();
    RETURN_IF_ERROR(reader.Next(block_rows, part.block));
    ParseBlock(uses, part);
    AppendPart(uses, part, CsvPlace());
    rows_ += static_cast<int64_t>(part.rows);
    RETURN_IF_ERROR(check());
  } while (part.rows == block_rows);
  return absl::OkStatus();
}

void FileColumns::AppendPart(const std::vector<ColumnUse>& uses, const Part& part,
                             const CsvPlace& base) {
  for (size_t i = 0; i < uses.size(); ++i) {
    ColumnValues& column = columns_[i].values;
    if (uses[i] == ColumnUse::kNumbers) {
      column.numbers.Append(part.columns[i].numbers, base.line - 1);
    } else if (uses[i] == ColumnUse::kTimes) {
      column.times.Append(part.columns[i].times, base.line - 1);
    } else if (uses[i] != ColumnUse::kSkipped) {
      if (uses[i] == ColumnUse::kKeys) column.dictionary.Unlimit();
      column.AppendTexts(part.columns[i]);
    }
  }
}

absl::Status FileColumns::ReadParts(const CsvText& file, int threads,
                                    const std::vector<ColumnUse>& uses,
                                    const std::function<absl::Status()>& check) {
  if (file.arrays != nullptr) return ReadArrays(file, uses, check);
  CsvChunks chunks;
  chunks.bytes = file.bytes;
  chunks.name = file.name;
  chunks.delimiter = file.delimiter;
  chunks.first = file.first;
  chunks.threads = threads;
  std::vector<Part> parts(static_cast<size_t>(chunks.slots()));
  chunks.parse = [&](int slot, CsvReader& reader, size_t stop) {
    return ParsePart(file, uses, reader, stop, parts[static_cast<size_t>(slot)]);
  };
  chunks.append = [&](int slot, const CsvPlace& base) {
    const Part& part = parts[static_cast<size_t>(slot)];
    AppendPart(uses, part, base);
    rows_ += static_cast<int64_t>(part.rows);
    return check();
  };
  return ReadCsvChunks(chunks);
}

// Sets how a column is read again that began with numbers or dates and has something else further
// down; kSkipped if it need not be.
void FileColumns::PlanNextPass(size_t i) {
  FileColumn& column = columns_[i];
  const TimeColumn& times = column.values.times;
  column.again = ColumnUse::kSkipped;
  if (column.use == ColumnUse::kNumbers) {
    if (!column.fixed && !column.values.numbers.texts().Few()) column.again = ColumnUse::kText;
    return;
  }
  const StrayTexts& texts = times.texts();
  if (column.use != ColumnUse::kTimes || (texts.count == 0 && times.number().row == 0)) return;
  const bool mixed = std::any_of(texts.first.begin(), texts.first.end(), [&](const BadValue& text) {
    double ignored;
    return ParseTime(text.text, OtherOrder(times.order()), ignored);
  });
  if (!column.turned && mixed && times.either()) {
    column.turned = true;
    column.again = ColumnUse::kTimes;
    column.values.times = TimeColumn(OtherOrder(times.order()));
  } else if (!column.fixed && (mixed || times.number().row > 0 || !texts.Few())) {
    column.again = ColumnUse::kText;
  }
}

absl::Status FileColumns::Read(const CsvText& file, int threads,
                               const std::function<absl::Status()>& check) {
  ASSIGN_OR_RETURN(const size_t likely_rows, Look(file));
  if (likely_rows == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.name, ": there is no row below the header"));
  }
  std::vector<ColumnUse> uses;
  for (FileColumn& column : columns_) {
    uses.push_back(column.use);
    if (column.use == ColumnUse::kNumbers) column.values.numbers.Reserve(likely_rows);
    if (column.use == ColumnUse::kText) column.values.codes.reserve(likely_rows);
  }
  RETURN_IF_ERROR(ReadParts(file, threads, uses, check));

  // The second pass may find that the other order of day and month does not serve either.
  constexpr int kMostPasses = 2;
  for (int pass = 0; pass < kMostPasses; ++pass) {
    bool any = false;
    for (size_t i = 0; i < columns_.size(); ++i) {
      PlanNextPass(i);
      FileColumn& column = columns_[i];
      uses[i] = column.again;
      if (column.again == ColumnUse::kSkipped) continue;
      any = true;
      column.use = column.again;
      column.values.numbers = NumberColumn();
      column.values.times = TimeColumn(column.values.times.order());
      if (column.use == ColumnUse::kText) column.values.codes.reserve(static_cast<size_t>(rows_));
    }
    if (!any) break;
    RETURN_IF_ERROR(ReadAgain(file, threads, uses));
  }
  return absl::OkStatus();
}

absl::Status FileColumns::ReadAgain(const CsvText& file, int threads,
                                    const std::vector<ColumnUse>& uses) {
  rows_ = 0;
  return ReadParts(file, threads, uses, [] { return absl::OkStatus(); });
}

absl::Status FileColumns::Turn(const CsvText& file, int threads,
                               const std::vector<size_t>& columns) {
  std::vector<ColumnUse> uses(columns_.size(), ColumnUse::kSkipped);
  for (const size_t i : columns) {
    uses[i] = ColumnUse::kTimes;
    TimeColumn& times = columns_[i].values.times;
    times = TimeColumn(OtherOrder(times.order()));
  }
  return ReadAgain(file, threads, uses);
}

}  // namespace traind
