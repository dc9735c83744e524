#include "common/table/file_columns.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "common/status_macros.h"
#include "common/table/csv_chunks.h"
#include "common/table/number.h"

namespace traind {
namespace {

// What the first rows show to be text need not be read as numbers first.
constexpr size_t kLookRows = 200;
constexpr size_t kMostReserved = 16 << 20;
// Rows at a time, column by column: their fields stay in the cache.
constexpr size_t kBlockFields = 2048;
constexpr size_t kLeastBlockRows = 16;

}  // namespace

void FileColumns::Use(size_t column, ColumnUse use) {
  columns_[column].use = use;
  columns_[column].fixed = true;
}

// Returns how many rows there may be; 0: none.
absl::StatusOr<size_t> FileColumns::Look(const CsvText& file) {
  CsvReader reader(file.bytes, file.name, file.delimiter, file.first);
  CsvRows rows;
  // An error further down than what is looked at here comes in its turn.
  const absl::Status status = reader.NextRows(file.header, file.bytes.size(), kLookRows, rows);
  if (rows.rows() == 0) return status.ok() ? absl::StatusOr<size_t>(size_t{0}) : status;
  for (size_t i = 0; i < columns_.size(); ++i) {
    FileColumn& column = columns_[i];
    if (column.fixed) continue;
    ColumnValues seen;
    seen.numbers.Add(rows.fields() + i, columns_.size(), rows.rows(), rows.lines());
    if (seen.numbers.text().row > 0) column.use = ColumnUse::kText;
  }
  // As many as there are if all are as long as these; a tenth on top spares most
  // files a second allocation.
  const size_t bytes_of_row = (reader.position() - file.first.at) / rows.rows() + 1;
  const size_t likely = (file.bytes.size() - file.first.at) / bytes_of_row * 11 / 10 + rows.rows();
  return std::min(likely, kMostReserved);
}

absl::Status FileColumns::ParsePart(const CsvText& file, const std::vector<ColumnUse>& uses,
                                    CsvReader& reader, size_t stop, Part& part) const {
  const size_t width = uses.size();
  part.rows = 0;
  part.columns.resize(width);
  for (ColumnValues& column : part.columns) column.Clear();
  const size_t block_rows = std::max(kLeastBlockRows, kBlockFields / width);
  absl::Status status;
  do {
    part.block.Clear();
    status = reader.NextRows(file.header, stop, block_rows, part.block);
    const size_t rows = part.block.rows();
    const absl::string_view* const fields = part.block.fields();
    for (size_t i = 0; i < width; ++i) {
      if (uses[i] == ColumnUse::kNumbers) {
        part.columns[i].numbers.Add(fields + i, width, rows, part.block.lines());
      } else if (uses[i] == ColumnUse::kText) {
        part.columns[i].AddTexts(fields + i, width, rows);
      }
    }
    part.rows += rows;
  } while (status.ok() && part.block.rows() == block_rows);
  return status;
}

void FileColumns::AppendPart(const std::vector<ColumnUse>& uses, const Part& part,
                             const CsvPlace& base) {
  for (size_t i = 0; i < uses.size(); ++i) {
    ColumnValues& column = columns_[i].values;
    if (uses[i] == ColumnUse::kNumbers) {
      column.numbers.Append(part.columns[i].numbers, base.line - 1);
    } else if (uses[i] == ColumnUse::kText) {
      column.AppendTexts(part.columns[i]);
    }
  }
}

absl::Status FileColumns::ReadParts(const CsvText& file, int threads,
                                    const std::vector<ColumnUse>& uses,
                                    const std::function<absl::Status()>& check) {
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

  // Columns that began with numbers and have text further down are read again.
  bool late_text = false;
  for (size_t i = 0; i < columns_.size(); ++i) {
    FileColumn& column = columns_[i];
    const bool late =
        column.use == ColumnUse::kNumbers && !column.fixed && column.values.numbers.text().row > 0;
    uses[i] = late ? ColumnUse::kText : ColumnUse::kSkipped;
    if (!late) continue;
    late_text = true;
    column.use = ColumnUse::kText;
    column.values.numbers = NumberColumn();
    column.values.codes.reserve(static_cast<size_t>(rows_));
  }
  if (!late_text) return absl::OkStatus();
  rows_ = 0;
  return ReadParts(file, threads, uses, [] { return absl::OkStatus(); });
}

}  // namespace traind
