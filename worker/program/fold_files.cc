#include "worker/program/fold_files.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/data/table/csv.h"
#include "common/data/table/decimal_commas.h"
#include "common/data/table/number.h"
#include "worker/program/answer_table.h"

namespace traind {
namespace {

constexpr ptrdiff_t kNone = -1;
constexpr char kByteOrderMark[] = "\xEF\xBB\xBF";

// A file that has its name once it is whole. A cut of power may lose it; the next start writes it
// again.
class WholeFile {
 public:
  explicit WholeFile(std::string path)
      : path_(std::move(path)),
        next_(absl::StrCat(path_, ".next")),
        out_(next_, std::ios::binary) {}
  ~WholeFile() {
    if (!done_) unlink(next_.c_str());
  }

  // Ends the last line of a file, too.
  void AddLine(absl::string_view line) {
    out_.write(line.data(), static_cast<std::streamsize>(line.size()));
    if (line.empty() || line.back() != '\n') out_.put('\n');
  }
  absl::Status Finish() {
    out_.close();
    done_ = out_.good() && rename(next_.c_str(), path_.c_str()) == 0;
    return done_ ? absl::OkStatus() : ErrnoStatus(errno, absl::StrCat("cannot write ", path_));
  }

 private:
  const std::string path_, next_;
  std::ofstream out_;
  bool done_ = false;
};

// The rows of a file with their bytes; the fields are as the table has read them.
class RowReader {
 public:
  explicit RowReader(const UserFile& file)
      : file_(file),
        delimiter_(DelimiterOf(file.bytes, file.name)),
        points_(WithDecimalPoints(file.bytes, delimiter_)),
        reader_(points_ ? absl::string_view(points_->bytes) : file.bytes, file.name, delimiter_) {}

  absl::StatusOr<bool> Next() {
    const size_t begin = reader_.position();
    ASSIGN_OR_RETURN(const bool more, reader_.Next());
    line_ = file_.bytes.substr(begin, reader_.position() - begin);
    absl::ConsumePrefix(&line_, kByteOrderMark);
    RemoveLinesOfBlanks();
    return more;
  }
  absl::string_view line() const { return line_; }
  const std::vector<absl::string_view>& fields() const { return reader_.fields(); }
  char delimiter() const { return delimiter_; }

 private:
  void RemoveLinesOfBlanks() {
    size_t end = line_.find_first_not_of(' ');
    while (end != line_.npos && (line_[end] == '\n' || line_[end] == '\r')) {
      line_.remove_prefix(end + 1);
      end = line_.find_first_not_of(' ');
    }
  }

  const UserFile& file_;
  const char delimiter_;
  const std::optional<DecimalPoints> points_;  // as long as the file
  CsvReader reader_;
  absl::string_view line_;
};

absl::Status Changed(const UserFile& file) {
  return absl::InvalidArgumentError(
      absl::StrCat(file.name, " was changed after the job had read it; submit the job again"));
}

ptrdiff_t FindColumn(const std::vector<std::string>& header, const std::string& name) {
  for (size_t i = 0; i < header.size(); ++i) {
    if (!name.empty() && header[i] == name) return static_cast<ptrdiff_t>(i);
  }
  return kNone;
}

// Whether the table's row has this target.
bool HasTarget(const Table& table, size_t row, absl::string_view text) {
  const TableSchema& schema = table.schema();
  if (schema.target_kind == TargetKind::kClasses) {
    const auto of_row = static_cast<size_t>(table.TargetClass(Split::kTrain)[row]);
    return SameClass(text, schema.classes[of_row]);
  }
  float value = 0;
  return ParseNumber(text, value) == NumberKind::kNumber &&
         value == table.TargetValue(Split::kTrain)[row];
}

// Where the field that begins at `from` ends: its delimiter, or the line's end.
size_t FieldEnd(absl::string_view line, size_t from, char delimiter) {
  const size_t first = line.find_first_not_of(" ", from);
  bool quoted = first != line.npos && line[first] == '"';
  for (size_t i = quoted ? first + 1 : from; i < line.size(); ++i) {
    if (quoted) {
      const bool doubled = line[i] == '"' && i + 1 < line.size() && line[i + 1] == '"';
      if (doubled)
        ++i;
      else if (line[i] == '"')
        quoted = false;
    } else if (line[i] == delimiter || line[i] == '\n' || line[i] == '\r') {
      return i;
    }
  }
  return line.size();
}

std::string WithoutColumn(absl::string_view line, size_t column, char delimiter) {
  size_t begin = 0;
  for (size_t i = 0; i < column; ++i) begin = FieldEnd(line, begin, delimiter) + 1;
  size_t end = FieldEnd(line, begin, delimiter);
  const bool last = end >= line.size() || line[end] != delimiter;
  if (!last) {
    ++end;  // with the delimiter behind it
  } else if (begin > 0) {
    --begin;  // with that before it
  }
  return absl::StrCat(line.substr(0, begin), line.substr(end));
}

// The file that each row of the table belongs to; null: to none.
std::vector<WholeFile*> Places(const Table& table, const FoldRows& rows, WholeFile& train,
                               WholeFile& valid) {
  std::vector<WholeFile*> places(static_cast<size_t>(table.rows(Split::kTrain)), nullptr);
  for (const int32_t row : rows.training) places[static_cast<size_t>(row)] = &train;
  for (const int32_t row : rows.validation) places[static_cast<size_t>(row)] = &valid;
  return places;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> WriteFoldFiles(const UserFile& file, const Table& table,
                                                        const FoldRows& rows,
                                                        const std::string& dir) {
  WholeFile train(absl::StrCat(dir, "/", kTrainCsv)), valid(absl::StrCat(dir, "/", kValidCsv));
  const std::vector<WholeFile*> places = Places(table, rows, train, valid);
  std::vector<std::string> repeated;
  ASSIGN_OR_RETURN(const std::vector<std::string> header,
                   ReadCsvHeader(file.bytes, file.name, &repeated));
  const ptrdiff_t target = FindColumn(header, table.schema().target);
  const ptrdiff_t id = FindColumn(header, table.schema().id);
  const bool classes = table.schema().target_kind == TargetKind::kClasses;
  if (target == kNone) return Changed(file);
  RowReader reader(file);
  RETURN_IF_ERROR(reader.Next().status());
  train.AddLine(reader.line());
  valid.AddLine(reader.line());
  std::vector<std::string> ids;
  size_t row = 0;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader.Next());
    if (!more) break;
    if (reader.fields().size() != header.size()) return Changed(file);
    const absl::string_view text = reader.fields()[static_cast<size_t>(target)];
    // The table has left such rows out.
    if (classes ? IsMissing(text) : IsMissingNumber(text)) continue;
    if (row >= places.size() || !HasTarget(table, row, text)) return Changed(file);
    WholeFile* const place = places[row++];
    if (place != nullptr) place->AddLine(reader.line());
    if (place == &valid && id != kNone) {
      ids.emplace_back(reader.fields()[static_cast<size_t>(id)]);
    }
  }
  if (row != places.size()) return Changed(file);
  RETURN_IF_ERROR(train.Finish());
  RETURN_IF_ERROR(valid.Finish());
  return ids;
}

absl::Status WriteTestFile(const UserFile& file, const Table& table, const std::string& dir) {
  WholeFile test(absl::StrCat(dir, "/", kTestCsv));
  std::vector<std::string> repeated;
  ASSIGN_OR_RETURN(const std::vector<std::string> header,
                   ReadCsvHeader(file.bytes, file.name, &repeated));
  const ptrdiff_t target = FindColumn(header, table.schema().target);
  RowReader reader(file);
  int64_t rows = -1;  // the header is none
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader.Next());
    if (!more) break;
    ++rows;
    if (target == kNone) {
      test.AddLine(reader.line());
    } else {
      test.AddLine(WithoutColumn(reader.line(), static_cast<size_t>(target), reader.delimiter()));
    }
  }
  if (rows != table.rows(Split::kTest)) return Changed(file);
  return test.Finish();
}

}  // namespace traind
