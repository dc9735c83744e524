// What rows have besides their columns, as PREPARE sees it: one class for each kind.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <vector>

#include "common/data/table/table_source.h"
#include "common/data/table/table_writer.h"
#include "worker/prepare/prepare_spec.h"

namespace traind {

// Threads: confined to one.
class RowMedia {
 public:
  virtual ~RowMedia() = default;

  // What the table is read from; valid as long as this. test: without a name where there
  // is none.
  virtual CsvFile train() const = 0;
  virtual CsvFile test() const = 0;
  // Columns that the table keeps as texts.
  virtual std::vector<std::string> text_columns() const = 0;
  // What decides the media besides the bytes of train() and test(): part of the cache's key.
  virtual std::string content() const = 0;
  // Whether the cache of that key is there, undamaged. state_dir ends without a slash.
  virtual bool IsCached(const std::string& state_dir, const std::string& key) const = 0;
  // Writes the cache of that key for a table that was read from train() and test(), and adds
  // what the floor sees: features that are floor_only. It may take training rows out.
  // Errors: InvalidArgument names what cannot be read.
  virtual absl::Status Add(const std::string& state_dir, const std::string& key,
                           TableRows& rows) const = 0;
  // InvalidArgument: a file is not as it was when it was opened.
  virtual absl::Status CheckUnchanged() const = 0;
};

// Of the kind that the spec asks for; null: rows are all there is. Errors: those of opening
// and reading what the spec names.
absl::StatusOr<std::unique_ptr<RowMedia>> OpenRowMedia(const PrepareSpec& spec, int threads);

}  // namespace traind
