// A user's table as text in UTF-8: unpacked, decoded from Windows-1252 or UTF-16, and without the
// rows of mere delimiters that spreadsheets leave at the end.
//
// What differs from the user's file is written to scratch files, so that the size of a table is not
// limited by memory.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/data/table/csv_file.h"
#include "common/data/table/scratch_file.h"

namespace traind {

// A larger table is not unpacked.
inline constexpr uint64_t kMostUnpackedBytes = uint64_t{16} << 30;

// Threads: immutable.
class TableText {
 public:
  // bytes: all of the file, or what was made of it; the caller keeps them. name: what errors call
  // the file. scratch: a folder for scratch files. Text in no known encoding is not decoded;
  // arrays and Parquet are left as they are. InvalidArgument names the file: it is cut or damaged,
  // or `most` is too little; ResourceExhausted: the disk is full.
  static absl::StatusOr<std::unique_ptr<TableText>> Of(absl::string_view bytes, std::string name,
                                                       const std::string& scratch,
                                                       uint64_t most = kMostUnpackedBytes);

  // Its bytes live as long as this object, and as the caller's.
  const CsvFile& csv() const { return csv_; }

 private:
  TableText() = default;
  absl::Status Unpack(const std::string& scratch, uint64_t most);
  absl::Status Decode(const std::string& scratch);

  CsvFile csv_;
  std::unique_ptr<ScratchFile> unpacked_, decoded_;  // null: nothing was to be done
};

// The beginning of a table.
struct TableStart {
  std::string name;    // what errors call it
  std::string text;    // at most kStartBytes, or a little more where it was decoded
  bool whole = false;  // it is all of the table
  double growth = 1;   // bytes of text for a byte of the file
};
inline constexpr size_t kStartBytes = 1 << 20;

// Unpacks and decodes the beginning of a file. part: its first bytes, at most kStartBytes.
// Text in no known encoding is left as it is; arrays and Parquet are too. InvalidArgument
// names the file: it is damaged, or `whole` and cut.
absl::StatusOr<TableStart> StartOfTable(std::string part, bool whole, std::string name);

}  // namespace traind
