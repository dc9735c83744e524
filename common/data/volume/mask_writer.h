// Masks as files.
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

// Writes a mask durably, slice by slice: uint8, 0 and 1. An NPY array [D, H, W], or a TIFF
// of a page per slice (BigTIFF past 4 GB), deflated.
// Threads: confined to one. Errors: those of DurableWriter.
class MaskWriter {
 public:
  static absl::StatusOr<std::unique_ptr<MaskWriter>> Create(const std::string& path, MaskForm form,
                                                            const VolumeShape& shape);
  virtual ~MaskWriter() = default;
  // [H, W]; D times.
  virtual absl::Status Append(absl::Span<const uint8_t> slice) = 0;
  // Once, last.
  virtual absl::StatusOr<FileDigest> Commit() = 0;
};

}  // namespace traind
