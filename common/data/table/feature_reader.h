// Reads the columns that models were trained on, out of a file or of rows that come later.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/data/table/column_reader.h"
#include "common/data/table/csv.h"
#include "common/data/table/file_columns.h"
#include "common/data/table/table.h"
#include "common/data/table/table_source.h"
#include "common/data/table/table_writer.h"

namespace traind {

// How one feature is read.
struct FeatureField {
  size_t column = 0;                       // its place among the file's columns
  absl::string_view name;                  // of that column
  const Dictionary* categories = nullptr;  // null: a number, or a part of a date
  int date_part = -1;
};

struct FeaturePlace {
  absl::string_view file;        // what errors call it
  absl::string_view trained_on;  // and the file that the features come from
  int64_t before = 0;            // rows of the file before these
};

// Appends a block's rows to each feature's. InvalidArgument: text, or a value that is not
// finite, in a numeric column; no date in one of dates. The first row's is told. With `strays`
// texts in numeric columns are counted there, by field, and become missing values.
absl::Status AddFeatureRows(const std::vector<FeatureField>& fields, const CsvRows& block,
                            size_t columns, const FeaturePlace& place,
                            std::vector<ColumnRows>& rows,
                            std::vector<StrayTexts>* strays = nullptr);
// After the last block: warns of the texts that were counted. InvalidArgument: a column has too
// many of them (StrayTexts::Few); its first one is named.
absl::Status CheckStrayTexts(const std::vector<FeatureField>& fields, const FeaturePlace& place,
                             const std::vector<StrayTexts>& strays,
                             std::vector<std::string>& warnings);

// What models take in and give out.
struct InputSchema {
  std::vector<Column> features;
  std::string id;  // empty: rows count from 0
  TargetKind target_kind = TargetKind::kClasses;
  std::vector<std::string> targets;
  std::vector<std::string> classes;       // kClasses
  std::vector<std::string> text_columns;  // as TableSchema's

  size_t outputs() const {
    return target_kind == TargetKind::kClasses ? classes.size() : targets.size();
  }
};
InputSchema InputSchemaOf(const TableSchema& schema);

// A data file's form: CSV, or arrays. The bytes outlive it. InvalidArgument: it has no
// header, is no text.
absl::StatusOr<CsvText> OpenDataFile(const CsvFile& file, std::vector<std::string>& warnings);

// Matches a file's columns with the features, by name. Threads: confined to one.
class FeatureReader {
 public:
  // `schema` outlives it. header: the file's columns. InvalidArgument names the columns
  // that are missing.
  static absl::StatusOr<std::unique_ptr<FeatureReader>> Match(
      const InputSchema& schema, const std::vector<std::string>& header, std::string file);

  // Appends; as AddFeatureRows.
  absl::Status Read(const CsvRows& block, int64_t before, std::vector<ColumnRows>& rows,
                    std::vector<StrayTexts>* strays = nullptr) const;
  // As CheckStrayTexts.
  absl::Status Check(const std::vector<StrayTexts>& strays,
                     std::vector<std::string>& warnings) const;
  // Appends each row's texts, a line for each column; nothing where there are no such columns.
  void ReadTexts(const CsvRows& block, TextRows& texts) const;
  // Where the id stands; -1: there is none.
  ptrdiff_t id_at() const { return id_at_; }
  // Columns that no feature, target or id has.
  const std::vector<std::string>& ignored() const { return ignored_; }

 private:
  FeatureReader() = default;

  std::string file_;
  size_t columns_ = 0;
  std::vector<FeatureField> fields_;
  std::vector<std::unique_ptr<Dictionary>> dictionaries_;
  std::vector<size_t> text_at_;
  ptrdiff_t id_at_ = -1;
  std::vector<std::string> ignored_;
};

}  // namespace traind
