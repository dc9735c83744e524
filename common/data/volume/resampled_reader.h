// Volumes and masks that are resampled while they are read.
#pragma once

#include <absl/status/status.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "common/data/volume/mask_reader.h"
#include "common/data/volume/resample.h"
#include "common/data/volume/volume_reader.h"

namespace traind {

// Reads a volume on another grid, linearly resampled, as float32. All slices of the file are read
// and checked once the last slice has been. Slices that are read in order are decoded once.
// Threads: confined to one. Errors: those of the reader.
std::unique_ptr<VolumeReader> ResampledVolume(std::unique_ptr<VolumeReader> reader,
                                              const VolumeShape& to, LowPass low_pass);

// Reads a mask on another grid, where each voxel has the class of the nearest one of the file.
// Threads: confined to one.
class ResampledMask {
 public:
  // shape: of the file.
  ResampledMask(std::unique_ptr<MaskReader> reader, const VolumeShape& shape,
                const VolumeShape& to);
  // out: [H, W]. Errors: those of MaskReader.
  absl::Status ReadSlice(int64_t z, absl::Span<uint8_t> out);

 private:
  const std::unique_ptr<MaskReader> reader_;
  const VolumeShape from_, to_;
  std::vector<int64_t> columns_;  // [W] of `to`
  std::vector<uint8_t> slice_;    // slice held_ of the file
  int64_t held_ = -1;
};

}  // namespace traind
