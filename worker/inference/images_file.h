// The images of a data file, decoded once into a scratch file beside its rows.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <string>

#include "common/data/image/image_input.h"
#include "worker/inference/rows_file.h"

namespace traind {

inline std::string ImagesPath(const std::string& rows_path) { return rows_path + ".images"; }

struct ImagesFileInfo {
  std::string sha256;   // of all pixels, in hex
  std::string warning;  // about unreadable images, which become black; empty: none
};

// Decodes the image of each row, in their order, into ImagesPath(rows_path), with `stride`
// bytes each. rows: their texts are the names that images.Read() takes.
// keep_going: asked now and then.
// Errors: InvalidArgument if too many images are unreadable; Cancelled if keep_going returned
// false; those of DurableWriter.
absl::StatusOr<ImagesFileInfo> WriteImagesFile(const ImageInput& images, const RowsFile& rows,
                                               int64_t stride, const std::string& rows_path,
                                               const std::function<bool()>& keep_going);

}  // namespace traind
