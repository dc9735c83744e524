#include "common/table/table_reader.h"

#include <absl/container/flat_hash_map.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "common/spec/suggest.h"
#include "common/status_macros.h"
#include "common/table/csv.h"
#include "common/table/feature_columns.h"
#include "common/table/file_columns.h"
#include "common/table/target_column.h"
#include "common/table/utf8.h"

namespace traind {
namespace {

constexpr ptrdiff_t kAbsent = -1;

// A file's column names and where they stand.
class Header {
 public:
  absl::Status Read(const CsvFile& file) {
    text_.name = file.name;
    text_.bytes = file.bytes;
    ASSIGN_OR_RETURN(text_.header, ReadCsvHeader(file.bytes, file.name));
    for (size_t i = 0; i < names().size(); ++i) places_[names()[i]] = static_cast<ptrdiff_t>(i);
    RETURN_IF_ERROR(CheckUtf8(file.bytes, file.name));
    CsvReader reader(file.bytes, file.name);
    RETURN_IF_ERROR(reader.Next().status());
    text_.first = reader.place();
    return absl::OkStatus();
  }
  const CsvText& text() const { return text_; }
  const std::vector<std::string>& names() const { return text_.header; }
  ptrdiff_t Find(const std::string& name) const {
    const auto it = places_.find(name);
    return it == places_.end() ? kAbsent : it->second;
  }

 private:
  CsvText text_;
  absl::flat_hash_map<std::string, ptrdiff_t> places_;
};

absl::Status NoSuchColumn(const CsvFile& file, absl::string_view role, const std::string& name,
                          const std::vector<std::string>& header) {
  std::string hint = DidYouMean(name, header);
  if (header.size() == 1 && header[0].find_first_of(";\t|") != std::string::npos) {
    hint =
        absl::StrCat("; its one column is '", header[0], "': fields must be separated by commas");
  }
  return absl::InvalidArgumentError(
      absl::StrCat(file.name, ": there is no column '", name, "' (", role, ")", hint));
}

// The training file's part of a table.
class TrainFile {
 public:
  explicit TrainFile(const TableSource& source)
      : source_(source), target_(source.train.name, source.target, source.target_kind) {}

  absl::Status Read();
  // Moves what was read into rows; the columns keep what the test file needs.
  absl::Status Finish(TableRows& rows);

  const Header& header() const { return header_; }
  const FeatureColumns& features() const { return *features_; }
  const TargetColumn& target() const { return target_; }

 private:
  const TableSource& source_;
  Header header_;
  size_t target_at_ = 0;
  std::unique_ptr<FileColumns> columns_;
  std::unique_ptr<FeatureColumns> features_;
  TargetColumn target_;
};

absl::Status TrainFile::Read() {
  const CsvFile& file = source_.train;
  RETURN_IF_ERROR(header_.Read(file));
  const ptrdiff_t target_at = header_.Find(source_.target);
  if (target_at == kAbsent)
    return NoSuchColumn(file, "the target", source_.target, header_.names());
  target_at_ = static_cast<size_t>(target_at);
  const ptrdiff_t id_at = source_.id.empty() ? kAbsent : header_.Find(source_.id);
  if (!source_.id.empty() && id_at == kAbsent && source_.test.name.empty()) {
    return NoSuchColumn(file, "the id", source_.id, header_.names());
  }
  columns_ = std::make_unique<FileColumns>(header_.names().size());
  columns_->Use(target_at_, target_.use());
  if (id_at != kAbsent) columns_->Use(static_cast<size_t>(id_at), ColumnUse::kSkipped);
  features_ = std::make_unique<FeatureColumns>(file.name, header_.names(), *columns_);
  features_->Skip(target_at_);
  return columns_->Read(header_.text(), source_.threads,
                        [this] { return target_.Check(columns_->values(target_at_)); });
}

absl::Status TrainFile::Finish(TableRows& rows) {
  TableSchema& schema = rows.schema;
  schema.target = source_.target;
  schema.target_kind = source_.target_kind;
  schema.id = source_.id;
  ASSIGN_OR_RETURN(const std::vector<uint32_t> kept,
                   target_.Finish(columns_->values(target_at_), schema.classes, rows.train_target,
                                  schema.warnings));
  schema.train_rows = static_cast<int64_t>(kept.size());
  return features_->Finish(kept, schema.features, rows.train, schema.warnings);
}

// Adds the test file's rows.
class TestFile {
 public:
  TestFile(const TableSource& source, const TrainFile& train) : source_(source), train_(train) {}

  absl::Status Read(TableRows& rows);

 private:
  absl::Status MatchColumns(TableRows& rows);

  const TableSource& source_;
  const TrainFile& train_;
  Header header_;
  std::vector<size_t> feature_at_;  // [feature]: its column in this file
  ptrdiff_t target_at_ = kAbsent;
  ptrdiff_t id_at_ = kAbsent;
};

absl::Status TestFile::MatchColumns(TableRows& rows) {
  const CsvFile& file = source_.test;
  target_at_ = header_.Find(source_.target);
  id_at_ = source_.id.empty() ? kAbsent : header_.Find(source_.id);
  if (!source_.id.empty() && id_at_ == kAbsent) {
    return NoSuchColumn(file, "the id", source_.id, header_.names());
  }
  std::vector<std::string> missing;
  for (const std::string& name : train_.header().names()) {
    if (name == source_.target || name == source_.id) continue;
    if (header_.Find(name) == kAbsent) missing.push_back(name);
  }
  if (!missing.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.name, ": ", NameColumns(missing), " of ", source_.train.name,
                     missing.size() == 1 ? " is missing" : " are missing",
                     DidYouMean(missing[0], header_.names())));
  }
  std::vector<std::string> extra;
  for (const std::string& name : header_.names()) {
    if (name == source_.target || name == source_.id) continue;
    if (train_.header().Find(name) == kAbsent) extra.push_back(name);
  }
  if (!extra.empty()) {
    rows.schema.warnings.push_back(
        absl::StrCat(file.name, ": ", NameColumns(extra), " ignored: not in ", source_.train.name));
  }
  for (const Column& column : rows.schema.features) {
    feature_at_.push_back(static_cast<size_t>(header_.Find(column.name)));
  }
  return absl::OkStatus();
}

absl::Status TestFile::Read(TableRows& rows) {
  const CsvFile& file = source_.test;
  RETURN_IF_ERROR(header_.Read(file));
  RETURN_IF_ERROR(MatchColumns(rows));
  rows.schema.test_has_target = target_at_ != kAbsent;
  TestTarget target(file.name, train_.target());
  CsvReader reader(file.bytes, file.name, header_.text().delimiter, header_.text().first);
  const size_t columns = header_.names().size();
  const size_t block_rows = std::max<size_t>(16, 2048 / columns);
  CsvRows block;
  absl::Status status;
  do {
    block.Clear();
    status = reader.NextRows(header_.names(), file.bytes.size(), block_rows, block);
    for (size_t i = 0; i < block.rows(); ++i) {
      const absl::string_view* const fields = block.fields() + i * columns;
      const int64_t row = rows.schema.test_rows + static_cast<int64_t>(i) + 1;
      if (target_at_ != kAbsent) {
        target.Add(fields[target_at_], row, block.lines()[i], rows.test_target);
      }
      if (id_at_ != kAbsent) rows.test_ids.Add(fields[id_at_]);
    }
    RETURN_IF_ERROR(train_.features().AddTestRows(block, columns, feature_at_, file.name,
                                                  rows.schema.test_rows, rows.test));
    rows.schema.test_rows += static_cast<int64_t>(block.rows());
  } while (status.ok() && block.rows() == block_rows);
  RETURN_IF_ERROR(status);
  if (rows.schema.test_rows == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.name, ": there is no row below the header"));
  }
  target.Finish(rows.schema.warnings);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TableRows> ReadTable(const TableSource& source) {
  if (source.target == source.id) {
    return absl::InvalidArgumentError(
        absl::StrCat("column '", source.target, "' is both the target and the id"));
  }
  TableRows rows;
  TrainFile train(source);
  RETURN_IF_ERROR(train.Read());
  RETURN_IF_ERROR(train.Finish(rows));
  rows.test.resize(rows.schema.features.size());
  if (!source.test.name.empty()) RETURN_IF_ERROR(TestFile(source, train).Read(rows));
  return rows;
}

}  // namespace traind
