// Writes masks as files.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/durable_file.h"
#include "common/data/volume/volume_shape.h"

namespace traind {

enum class MaskForm { kNpy, kTiff };

// Writes a mask durably, slice by slice: uint8, 0 and 1, as an NPY array [D, H, W], or as a TIFF
// with a compressed page per slice.
// Threads: confined to one. Errors: those of DurableWriter.
class MaskWriter {
 public:
  static absl::StatusOr<std::unique_ptr<MaskWriter>> Create(const std::string& path, MaskForm form,
                                                            const VolumeShape& shape);
  virtual ~MaskWriter() = default;
  // slice: [H, W]. Call it D times.
  virtual absl::Status Append(absl::Span<const uint8_t> slice) = 0;
  // REQUIRES: called once, and last.
  virtual absl::StatusOr<FileDigest> Commit() = 0;
};

}  // namespace traind
