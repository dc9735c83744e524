// What PREPARE reads: the files that a spec names, whatever they are.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <memory>
#include <string>

#include "common/data/table/mapped_file.h"
#include "common/data/table/table_source.h"
#include "common/data/table/table_writer.h"
#include "worker/prepare/prepare_spec.h"
#include "worker/prepare/row_media.h"

namespace traind {

// What the table is read from, and what its rows have besides.
// Threads: confined to one.
class DataFiles {
 public:
  // Errors: those of opening and reading what the spec names, and of the Parquet plug-in.
  static absl::StatusOr<std::unique_ptr<DataFiles>> Open(const PrepareSpec& spec);

  const RowMedia* media() const { return media_.get(); }  // null: rows are all there is
  // The digest of all that decides what the table is, and what rows have besides. tokenizer: the
  // bytes of a file that the spec names, as others train other folds; empty: none.
  std::string Key(const PrepareSpec& spec, absl::string_view tokenizer) const;
  // InvalidArgument: a file was changed since it was opened; those of ReadTable.
  absl::StatusOr<TableRows> Read(const PrepareSpec& spec) const;

 private:
  DataFiles() = default;
  absl::Status OpenTables(const PrepareSpec& spec);
  absl::Status CheckUnchanged() const;

  std::unique_ptr<RowMedia> media_;
  std::unique_ptr<MappedFile> mapped_train_, mapped_test_;  // where there are no media
  std::string csv_train_, csv_test_;                        // of Parquet tables
  CsvFile train_, test_;                                    // they look into the others
};

}  // namespace traind
