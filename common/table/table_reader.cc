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
#include "common/table/target_column.h"
#include "common/table/utf8.h"

namespace traind {
namespace {

constexpr ptrdiff_t kAbsent = -1;

// A file's column names and where they stand.
class Header {
 public:
  absl::Status Read(const CsvFile& file) {
    ASSIGN_OR_RETURN(names_, ReadCsvHeader(file.bytes, file.name));
    for (size_t i = 0; i < names_.size(); ++i) places_[names_[i]] = static_cast<ptrdiff_t>(i);
    return CheckUtf8(file.bytes, file.name);
  }
  const std::vector<std::string>& names() const { return names_; }
  ptrdiff_t Find(const std::string& name) const {
    const auto it = places_.find(name);
    return it == places_.end() ? kAbsent : it->second;
  }

 private:
  std::vector<std::string> names_;
  absl::flat_hash_map<std::string, ptrdiff_t> places_;
};

// Calls row(fields, row number, line) for each data row of a file, which must be
// as wide as its header.
template <typename Row>
absl::Status ForEachRow(const CsvFile& file, const std::vector<std::string>& header,
                        int64_t max_rows, Row row) {
  CsvReader reader(file.bytes, file.name);
  RETURN_IF_ERROR(reader.Next().status());  // the header
  for (int64_t number = 1; number <= max_rows; ++number) {
    ASSIGN_OR_RETURN(const bool any, reader.Next());
    if (!any) break;
    if (reader.fields().size() != header.size()) {
      return RaggedRow(file.name, number, reader.line(), reader.fields().size(), header);
    }
    RETURN_IF_ERROR(row(reader.fields(), number, reader.line()));
  }
  return absl::OkStatus();
}

constexpr int64_t kAllRows = std::numeric_limits<int64_t>::max();

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
  features_ = std::make_unique<FeatureColumns>(file.name, header_.names());
  features_->Skip(target_at_);
  if (id_at != kAbsent) features_->Skip(static_cast<size_t>(id_at));

  // What the first rows show to be text need not be read as numbers first.
  constexpr int64_t kLookRows = 200;
  size_t looked = 0, looked_bytes = 0;
  RETURN_IF_ERROR(ForEachRow(file, header_.names(), kLookRows,
                             [&](const std::vector<absl::string_view>& fields, int64_t, int64_t) {
                               features_->Look(fields);
                               ++looked;
                               for (const absl::string_view field : fields) {
                                 looked_bytes += field.size() + 1;
                               }
                               return absl::OkStatus();
                             }));
  if (looked == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.name, ": there is no row below the header"));
  }
  // As many as there are if all are as long as these; a tenth on top spares most
  // files a second allocation.
  constexpr size_t kMostReserved = 16 << 20;
  const size_t likely = file.bytes.size() / (looked_bytes / looked) * 11 / 10 + looked;
  const size_t rows = std::min(likely, kMostReserved);
  features_->Reserve(rows);
  RETURN_IF_ERROR(
      ForEachRow(file, header_.names(), kAllRows,
                 [&](const std::vector<absl::string_view>& fields, int64_t row, int64_t line) {
                   features_->Add(fields, row, line);
                   return target_.Add(fields[target_at_], row, line);
                 }));
  if (!features_->HasLateText()) return absl::OkStatus();
  features_->BeginLateText(rows);
  return ForEachRow(file, header_.names(), kAllRows,
                    [&](const std::vector<absl::string_view>& fields, int64_t, int64_t) {
                      features_->AddLateText(fields);
                      return absl::OkStatus();
                    });
}

absl::Status TrainFile::Finish(TableRows& rows) {
  TableSchema& schema = rows.schema;
  schema.target = source_.target;
  schema.target_kind = source_.target_kind;
  schema.id = source_.id;
  ASSIGN_OR_RETURN(const std::vector<uint32_t> kept,
                   target_.Finish(schema.classes, rows.train_target, schema.warnings));
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
  RETURN_IF_ERROR(ForEachRow(
      file, header_.names(), kAllRows,
      [&](const std::vector<absl::string_view>& fields, int64_t row, int64_t line) {
        ++rows.schema.test_rows;
        if (target_at_ != kAbsent) {
          target.Add(fields[static_cast<size_t>(target_at_)], row, line, rows.test_target);
        }
        if (id_at_ != kAbsent) rows.test_ids.Add(fields[static_cast<size_t>(id_at_)]);
        return train_.features().AddTestRow(fields, feature_at_, file.name, row, line, rows.test);
      }));
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
