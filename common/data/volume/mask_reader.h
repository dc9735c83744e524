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

#include "common/data/volume/volume_reader.h"

namespace traind {

// Reads a mask: 0 is background. Of one foreground class 1 or 255 (one of both in a whole file)
// is foreground; of several each value from 1 to their number is one of them.
// Threads: confined to one. Errors: those of VolumeReader, and InvalidArgument for other values,
// with the first one's place.
class MaskReader {
 public:
  // The mask of a volume of that shape. InvalidArgument: of another shape.
  static absl::StatusOr<std::unique_ptr<MaskReader>> Open(const std::string& path,
                                                          const VolumeShape& of, int classes = 1);
  // out: [H, W], 0 to the number of classes.
  absl::Status ReadSlice(int64_t z, absl::Span<uint8_t> out);

 private:
  MaskReader(std::string path, std::unique_ptr<VolumeReader> reader, int classes)
      : path_(std::move(path)), reader_(std::move(reader)), classes_(classes) {}
  // What the value means; < 0: nothing.
  int LabelOf(float value);

  const std::string path_;
  const std::unique_ptr<VolumeReader> reader_;
  const int classes_;
  std::vector<float> values_;
  float foreground_ = 0;  // of one class; 0: not seen yet
};

}  // namespace traind
