// Rows with images: lists folders, decodes the files into the cache, and computes the floor's
// features from the pixels.
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

// Lists folders, opens tables, and digests all files that they name. Add() gives the floor the
// mean and standard deviation of each channel, and a grey thumbnail of 8 x 8. It omits training
// rows with unreadable images, gives test rows with unreadable images a black one, and names
// them in the schema's warnings. InvalidArgument if there are too many of them.
// Errors: those of ListClassFolders and MappedFile; InvalidArgument if a table lacks the
// column.
absl::StatusOr<std::unique_ptr<RowMedia>> OpenImageMedia(const PrepareSpec& spec, int threads);

// Removes training rows. REQUIRES: rows are not ordered (schema.ordered).
void DropTrainRows(const std::vector<bool>& dropped, TableRows& rows);

// A feature for the floor, [images], computed from pixels [images, size, size, channels].
struct FloorColumn {
  std::string name;
  std::vector<float> values;
};
std::vector<FloorColumn> ImageFloorColumns(const std::vector<uint8_t>& pixels, int64_t size,
                                           int64_t channels);

}  // namespace traind
