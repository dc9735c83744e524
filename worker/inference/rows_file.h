// The features of a data file that may be larger than memory, as a scratch file: the data are
// read once, and each model maps the scratch file in turn.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/data/table/feature_reader.h"
#include "common/data/table/mapped_file.h"
#include "worker/data/row_encoder.h"

namespace traind {

// Rows are stored in blocks of this size, feature by feature.
inline constexpr int64_t kRowsPerBlock = 16384;

struct RowsFileInfo {
  int64_t rows = 0;
  std::vector<std::string> warnings;  // for the user
};

// The path of the rows' texts, one after the other, followed by the end of each as uint64. The
// file exists if the schema has text columns.
inline std::string TextsPath(const std::string& rows_path) { return rows_path + ".texts"; }

// Reads `data` and writes rows_path, TextsPath() and, if the schema has an id, ids_path: the
// length of each row's id, a colon, and the id. keep_going: asked after each block.
// Errors: InvalidArgument names file, row and column; Cancelled if keep_going returned false;
// those of DurableWriter.
absl::StatusOr<RowsFileInfo> WriteRowsFile(const InputSchema& schema, const CsvFile& data,
                                           const std::string& rows_path,
                                           const std::string& ids_path,
                                           const std::function<bool()>& keep_going);

// Some rows of a later file.
struct LaterRows : FeatureRows {
  const uint8_t* pixels = nullptr;  // [rows, size, size, channels]; null: rows have no images
};

// Reads a file that WriteRowsFile() has written. Threads: immutable.
class RowsFile {
 public:
  // Errors: DataLoss if the file has the wrong size.
  static absl::StatusOr<RowsFile> Open(const std::string& path, const InputSchema& schema,
                                       int64_t rows);
  int64_t blocks() const { return (rows_ + kRowsPerBlock - 1) / kRowsPerBlock; }
  int64_t rows() const { return rows_; }
  // Number of rows of a block.
  int64_t RowsOf(int64_t block) const;
  LaterRows Block(int64_t block) const;
  // Opens the images of all rows, with `stride` bytes each. Errors: DataLoss if the
  // file has the wrong size.
  absl::Status OpenImages(const std::string& path, int64_t stride);

 private:
  RowsFile() = default;

  std::unique_ptr<MappedFile> file_, texts_, images_;  // texts_, images_: null if there are none
  std::vector<bool> numeric_;                          // [feature]
  int64_t rows_ = 0;
  int64_t stride_ = 0;  // bytes per image
};

}  // namespace traind
