// Encodes and parses the header of a table file (see table.h).
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/data/table/table.h"

namespace traind {

inline constexpr absl::string_view kTableMagic = "TRTABLE1";
inline constexpr uint64_t kTableAlignment = 64;

// Where an array lies in the file. Its dtype follows from its content: float32 for numbers, int32
// for codes, bytes for text, uint64 for ends of texts.
struct ArrayPlace {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct TableHeader {
  TableSchema schema;
  // [feature][split]; without test rows the second place is empty.
  std::vector<std::array<ArrayPlace, 2>> features;
  std::array<ArrayPlace, 2> target;
  ArrayPlace id_ends;  // uint64 [test_rows]: where each id ends in id_text
  ArrayPlace id_text;
  // One text column of one split, stored like the ids.
  struct Texts {
    ArrayPlace ends, text;
  };
  std::vector<std::array<Texts, 2>> texts;  // [schema.text_columns][split]
  // One for each of schema.more_targets, like `target`.
  std::vector<std::array<ArrayPlace, 2>> more_targets;
  // The following places are empty where the table has no such array.
  std::array<ArrayPlace, 2> series_ends;  // uint64 [series]
  ArrayPlace times;                       // float64 [train_rows]
  ArrayPlace test_order;                  // int64 [test_rows]
  ArrayPlace groups;                      // int32 [train_rows]
  ArrayPlace given_folds;                 // int32 [train_rows]
  std::string data_sha256;                // of all bytes after the header's padding
};

// Returns magic, size and JSON, padded so that the data is aligned.
std::string EncodeTableHeader(const TableHeader& header);

// Returns where the first array may begin.
uint64_t TableDataBegin(uint64_t json_bytes);

// `bytes`: the beginning of the file, with the whole header; file_bytes: the file's length.
// DataLoss says what is wrong. Every place in the result lies inside the file, is aligned, and is
// as long as its rows need.
absl::StatusOr<TableHeader> ParseTableHeader(absl::string_view bytes, uint64_t file_bytes,
                                             absl::string_view name);

}  // namespace traind
