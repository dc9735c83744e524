// The header of a table file (see table.h), between its bytes and its meaning.
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

// Where an array lies in the file. Its dtype follows from what it is: float32
// for numbers, int32 for codes, bytes for text, uint64 for the ends of ids.
struct ArrayPlace {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct TableHeader {
  TableSchema schema;
  // [feature][split]; without test rows the second one is empty.
  std::vector<std::array<ArrayPlace, 2>> features;
  std::array<ArrayPlace, 2> target;
  ArrayPlace id_ends;  // uint64 [test_rows]: where each id ends in id_text
  ArrayPlace id_text;
  // One text column, of one split, as the ids are.
  struct Texts {
    ArrayPlace ends, text;
  };
  std::vector<std::array<Texts, 2>> texts;  // [schema.text_columns][split]
  // Of schema.more_targets, as `target`.
  std::vector<std::array<ArrayPlace, 2>> more_targets;
  // Without bytes where the table has no such thing.
  std::array<ArrayPlace, 2> series_ends;  // uint64 [series]
  ArrayPlace times;                       // float64 [train_rows]
  ArrayPlace test_order;                  // int64 [test_rows]
  ArrayPlace groups;                      // int32 [train_rows]
  ArrayPlace given_folds;                 // int32 [train_rows]
  std::string data_sha256;                // of all bytes after the header's padding
};

// Magic, size and JSON, padded so that what follows is aligned.
std::string EncodeTableHeader(const TableHeader& header);

// Where the first array may begin.
uint64_t TableDataBegin(uint64_t json_bytes);

// `bytes`: the file's beginning, with all of its header; file_bytes: how long it
// is. DataLoss says what is wrong. Every place in the result lies inside the
// file, is aligned, and is as long as its rows need.
absl::StatusOr<TableHeader> ParseTableHeader(absl::string_view bytes, uint64_t file_bytes,
                                             absl::string_view name);

}  // namespace traind
