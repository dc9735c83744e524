// Images that come within a row.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/data/image/image_fields.h"
#include "common/data/table/table_writer.h"

namespace traind {

// Appends the pixels [size, size, channels] of each row's image. images: JPEG or PNG files in
// base64 (RFC 4648), a data URL's head before it or not. No file of ours is ever opened.
// InvalidArgument names the row, from 1, and the column; `pixels` is as before then.
absl::Status AddRowImages(const ImageFields& fields, const TextRows& images,
                          std::vector<uint8_t>& pixels);

}  // namespace traind
