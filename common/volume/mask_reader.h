// What a mask's file has to be.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/volume/volume_reader.h"

namespace traind {

// Reads a mask: 0 is background, 1 or 255 (one of both in a whole file) foreground.
// Threads: confined to one. Errors: those of VolumeReader, and InvalidArgument for other values.
class MaskReader {
 public:
  // The mask of a volume of that shape. InvalidArgument: of another shape.
  static absl::StatusOr<std::unique_ptr<MaskReader>> Open(const std::string& path,
                                                          const VolumeShape& of);
  // out: [H, W], 0 or 1.
  absl::Status ReadSlice(int64_t z, absl::Span<uint8_t> out);

 private:
  MaskReader(std::string path, std::unique_ptr<VolumeReader> reader)
      : path_(std::move(path)), reader_(std::move(reader)) {}

  const std::string path_;
  const std::unique_ptr<VolumeReader> reader_;
  std::vector<float> values_;
  float foreground_ = 0;  // 0: not seen yet
};

}  // namespace traind
