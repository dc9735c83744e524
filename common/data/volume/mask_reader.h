// Reads and checks the files of masks.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/data/volume/orientation.h"
#include "common/data/volume/volume_reader.h"

namespace traind {

// The volume that a mask belongs to.
struct MaskedVolume {
  MaskedVolume(const VolumeShape& of_file) : shape(of_file) {}  // NOLINT: any mask of that shape

  VolumeShape shape;                      // of its file
  Orientation orientation;                // that turned it, and turns the mask
  std::optional<NiftiGeometry> geometry;  // none: the mask's header does not count
  std::string scratch;                    // as for TurnedVolume; unused where nothing is turned
};

// Reads a mask: 0 is background. With one foreground class, 1 or 255 (one of the two in a whole
// file) is foreground; with several, each value from 1 to their number is a class. The mask is
// turned as its volume is, or as its own header says where that tells other axes.
// Threads: confined to one. Errors: those of VolumeReader, and InvalidArgument, with the first
// place, for other values.
class MaskReader {
 public:
  // InvalidArgument: the mask has another shape, or its header places it elsewhere.
  static absl::StatusOr<std::unique_ptr<MaskReader>> Open(const std::string& path,
                                                          const MaskedVolume& of, int classes = 1);
  // out: [H, W], values from 0 to the number of classes.
  absl::Status ReadSlice(int64_t z, absl::Span<uint8_t> out);

 private:
  MaskReader(std::string path, std::unique_ptr<VolumeReader> reader, const Orientation& orientation,
             const VolumeShape& file, int classes)
      : path_(std::move(path)),
        reader_(std::move(reader)),
        orientation_(orientation),
        file_(file),
        classes_(classes) {}
  // Returns the class of a value; < 0: the value is not allowed.
  int LabelOf(float value);

  const std::string path_;
  const std::unique_ptr<VolumeReader> reader_;
  const Orientation orientation_;
  const VolumeShape file_;
  const int classes_;
  std::vector<float> values_;
  float foreground_ = 0;  // with one class: its value; 0: not seen yet
};

}  // namespace traind
