// The media of rows during PREPARE, with one implementation for each kind of media.
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

  // The sources of the table, valid as long as this object. test() has no name if
  // there is no test file.
  virtual CsvFile train() const = 0;
  virtual CsvFile test() const = 0;
  // The columns that the table keeps as texts.
  virtual std::vector<std::string> text_columns() const = 0;
  // Everything that determines the media besides the bytes of train() and test().
  // Part of the cache's key.
  virtual std::string content() const = 0;
  // Whether the cache with that key exists and is undamaged. state_dir ends without a slash.
  virtual bool IsCached(const std::string& state_dir, const std::string& key) const = 0;
  // Writes the cache with that key for a table that was read from train() and test(), and adds
  // the floor's features (floor_only). May remove training rows. Errors: InvalidArgument names
  // the unreadable files.
  virtual absl::Status Add(const std::string& state_dir, const std::string& key,
                           TableRows& rows) const = 0;
  // Errors: InvalidArgument if a file has changed since it was opened.
  virtual absl::Status CheckUnchanged() const = 0;
};

// Opens media of the kind that the spec asks for; null if rows have none. Errors: those of
// opening and reading the files that the spec names.
absl::StatusOr<std::unique_ptr<RowMedia>> OpenRowMedia(const PrepareSpec& spec, int threads);

}  // namespace traind
