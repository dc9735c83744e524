// The input files of PREPARE that a spec names, of any kind.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <memory>
#include <string>

#include "common/data/table/mapped_file.h"
#include "common/data/table/table_source.h"
#include "common/data/table/table_text.h"
#include "common/data/table/table_writer.h"
#include "worker/prepare/prepare_spec.h"
#include "worker/prepare/row_media.h"

namespace traind {

// The sources of the table, and the media of its rows.
// Threads: confined to one.
class DataFiles {
 public:
  // Errors: those of opening and reading the files, and of the Parquet plug-in.
  static absl::StatusOr<std::unique_ptr<DataFiles>> Open(const PrepareSpec& spec);

  const RowMedia* media() const { return media_.get(); }  // null: rows have no media
  // The digest of everything that determines the table and its rows' media. tokenizer: the
  // bytes of the tokenizer file that the spec names, because another tokenizer means other
  // trained folds; empty: none.
  std::string Key(const PrepareSpec& spec, absl::string_view tokenizer) const;
  // Errors: InvalidArgument if a file was changed since it was opened; those of ReadTable.
  absl::StatusOr<TableRows> Read(const PrepareSpec& spec) const;

 private:
  DataFiles() = default;
  absl::Status OpenTables(const PrepareSpec& spec);
  absl::Status CheckUnchanged() const;

  std::unique_ptr<RowMedia> media_;
  std::unique_ptr<MappedFile> mapped_train_, mapped_test_;  // used if there are no media
  std::string csv_train_, csv_test_;                        // converted from Parquet tables
  std::unique_ptr<TableText> text_train_, text_test_;       // unpacked and decoded
  CsvFile train_, test_;                                    // views of the members above
};

}  // namespace traind
