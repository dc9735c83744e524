// Rows with images: lists folders, decodes the files into the cache, and makes of the pixels
// what the floor sees.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/data/table/table_writer.h"
#include "worker/prepare/prepare_spec.h"
#include "worker/prepare/row_media.h"

namespace traind {

// Lists folders, opens tables, and digests all files that they name. Add() gives the floor
// the mean and deviation of each channel, and a grey thumbnail of 8 x 8; it leaves training
// rows out whose image cannot be read, gives test rows a black one, and names them in the
// schema's warnings. InvalidArgument where these are too many.
// Errors: those of ListClassFolders and MappedFile; InvalidArgument where a table lacks the
// column.
absl::StatusOr<std::unique_ptr<RowMedia>> OpenImageMedia(const PrepareSpec& spec, int threads);

// Takes training rows out. REQUIRES: rows are not ordered (schema.ordered).
void DropTrainRows(const std::vector<bool>& dropped, TableRows& rows);

// Columns for the floor, each [images], of pixels [images, size, size, channels].
struct FloorColumn {
  std::string name;
  std::vector<float> values;
};
std::vector<FloorColumn> ImageFloorColumns(const std::vector<uint8_t>& pixels, int64_t size,
                                           int64_t channels);

}  // namespace traind
