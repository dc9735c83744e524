// Images that are sent within a row.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/data/image/image_fields.h"
#include "common/data/table/table_writer.h"

namespace traind {

// Appends the pixels [size, size, channels] of each row's image. images: JPEG or PNG files in
// base64 (RFC 4648), with or without the head of a data URL. Never opens a file.
// Errors: InvalidArgument names the row, counted from 1, and the column;
// `pixels` stays unchanged then.
absl::Status AddRowImages(const ImageFields& fields, const TextRows& images,
                          std::vector<uint8_t>& pixels);

}  // namespace traind
