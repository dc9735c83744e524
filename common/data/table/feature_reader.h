// Reads the columns that models were trained on from a later file or from later rows.
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
#include "common/data/table/text_features.h"

namespace traind {

// How one feature is read.
struct FeatureField {
  size_t column = 0;                       // its index among the file's columns
  absl::string_view name;                  // that column's name
  const Dictionary* categories = nullptr;  // nullptr: a number, or a part of a date or text
  // Of a text: the parts of its column, which are the features from here on. REQUIRES: the fields
  // of a column's parts follow one another; all but the first have nullptr and `text`.
  const TextFeatureReader* parts = nullptr;
  bool text = false;
  int date_part = -1;
  DateOrder date_order = DateOrder::kMonthFirst;
  double offset = 0;  // as in Column
};

struct FeaturePlace {
  absl::string_view file;        // what errors call it
  absl::string_view trained_on;  // the file that the features come from
  int64_t before = 0;            // number of the file's rows before these
};

// Appends the values of a block to each feature. InvalidArgument: text or a value that is not
// finite in a numeric column, or something else than a date in a date column; the error names the
// first such row. With `strays`, texts in columns of numbers and of dates are counted there, by the
// column's first field, and become missing values.
absl::Status AddFeatureRows(const std::vector<FeatureField>& fields, const CsvRows& block,
                            size_t columns, const FeaturePlace& place,
                            std::vector<ColumnRows>& rows,
                            std::vector<StrayTexts>* strays = nullptr);
// Call this after the last block: warns of the texts that were counted. InvalidArgument: a column
// has too many of them (StrayTexts::Few); the error names its first one.
absl::Status CheckStrayTexts(const std::vector<FeatureField>& fields, const FeaturePlace& place,
                             const std::vector<StrayTexts>& strays,
                             std::vector<std::string>& warnings);

// The inputs and outputs of trained models.
struct InputSchema {
  std::vector<Column> features;
  std::string id;  // name of the id column; empty: rows are numbered from 0
  TargetKind target_kind = TargetKind::kClasses;
  std::vector<std::string> targets;
  std::vector<std::string> classes;       // kClasses
  std::vector<std::string> text_columns;  // as in TableSchema

  size_t outputs() const {
    return target_kind == TargetKind::kClasses ? classes.size() : targets.size();
  }
};
InputSchema InputSchemaOf(const TableSchema& schema);

// Recognizes a data file's format: CSV, or arrays. The bytes outlive the result. InvalidArgument:
// the file has no header, or is not text.
absl::StatusOr<CsvText> OpenDataFile(const CsvFile& file, std::vector<std::string>& warnings);

// Matches a file's columns with the features, by name.
// Threads: confined to one.
class FeatureReader {
 public:
  // `schema` outlives the reader. header: the file's columns. InvalidArgument names the columns
  // that are missing.
  static absl::StatusOr<std::unique_ptr<FeatureReader>> Match(
      const InputSchema& schema, const std::vector<std::string>& header, std::string file);

  // Appends the features of the rows; errors as for AddFeatureRows.
  absl::Status Read(const CsvRows& block, int64_t before, std::vector<ColumnRows>& rows,
                    std::vector<StrayTexts>* strays = nullptr) const;
  // Does the same as CheckStrayTexts.
  absl::Status Check(const std::vector<StrayTexts>& strays,
                     std::vector<std::string>& warnings) const;
  // Appends each row's texts, a line for each text column; does nothing if there are none.
  void ReadTexts(const CsvRows& block, TextRows& texts) const;
  // The index of the id column; -1: there is none.
  ptrdiff_t id_at() const { return id_at_; }
  // Columns that are neither features, targets nor the id.
  const std::vector<std::string>& ignored() const { return ignored_; }

 private:
  FeatureReader() = default;

  std::string file_;
  size_t columns_ = 0;
  std::vector<FeatureField> fields_;
  std::vector<std::unique_ptr<Dictionary>> dictionaries_;
  std::vector<std::unique_ptr<TextFeatureReader>> parts_;
  std::vector<size_t> text_at_;
  ptrdiff_t id_at_ = -1;
  std::vector<std::string> ignored_;
};

}  // namespace traind
