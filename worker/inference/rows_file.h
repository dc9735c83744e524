// The features of a data file that may be larger than memory, as a scratch file: read once,
// then mapped by each model in turn.
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

// Rows lie in blocks of so many, feature by feature.
inline constexpr int64_t kRowsPerBlock = 16384;

struct RowsFileInfo {
  int64_t rows = 0;
  std::vector<std::string> warnings;  // for the user
};

// The texts of the rows, one after the other, then where each ends, uint64; there where the
// schema has text columns.
inline std::string TextsPath(const std::string& rows_path) { return rows_path + ".texts"; }

// Reads `data` and writes rows_path, TextsPath(), and, where the schema has an id, ids_path: of
// each row the id's length, a colon, and the id. keep_going: asked after each block.
// InvalidArgument names file, row and column; Cancelled: keep_going said no; else as of
// DurableWriter.
absl::StatusOr<RowsFileInfo> WriteRowsFile(const InputSchema& schema, const CsvFile& data,
                                           const std::string& rows_path,
                                           const std::string& ids_path,
                                           const std::function<bool()>& keep_going);

// Some rows of a later file.
struct LaterRows : FeatureRows {
  const uint8_t* pixels = nullptr;  // [rows, size, size, channels]; null: rows have no images
};

// Threads: immutable.
class RowsFile {
 public:
  // DataLoss: it has another size.
  static absl::StatusOr<RowsFile> Open(const std::string& path, const InputSchema& schema,
                                       int64_t rows);
  int64_t blocks() const { return (rows_ + kRowsPerBlock - 1) / kRowsPerBlock; }
  int64_t rows() const { return rows_; }
  // Rows of one block.
  int64_t RowsOf(int64_t block) const;
  LaterRows Block(int64_t block) const;
  // The images of all rows, `stride` bytes each. DataLoss: the file has another size.
  absl::Status OpenImages(const std::string& path, int64_t stride);

 private:
  RowsFile() = default;

  std::unique_ptr<MappedFile> file_, texts_, images_;  // the latter null where there are none
  std::vector<bool> numeric_;                          // [feature]
  int64_t rows_ = 0;
  int64_t stride_ = 0;  // of the images
};

}  // namespace traind
