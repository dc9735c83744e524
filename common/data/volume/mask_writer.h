// Writes masks as files.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/durable_file.h"
#include "common/data/volume/nifti_header.h"
#include "common/data/volume/orientation.h"
#include "common/data/volume/volume_shape.h"

namespace traind {

enum class MaskForm { kNpy, kTiff, kNifti, kPng };

// The end of the name of a file of that form, with its dot.
std::string MaskEnding(MaskForm form);

// Writes a mask durably, slice by slice: uint8, 0 and 1, as an NPY array [D, H, W], as a TIFF with
// a compressed page per slice, as NIfTI packed by gzip, or as a PNG of a single slice. Threads:
// confined to one. Errors: those of DurableWriter and SliceTurner.
class MaskWriter {
 public:
  // shape: of the slices that come; orientation: the one that turned them, which is undone in the
  // file. geometry: what the header of a NIfTI file says of the room. REQUIRES: a PNG has one
  // slice.
  static absl::StatusOr<std::unique_ptr<MaskWriter>> Create(const std::string& path, MaskForm form,
                                                            const VolumeShape& shape,
                                                            const NiftiGeometry& geometry = {},
                                                            const Orientation& orientation = {});
  virtual ~MaskWriter() = default;
  // slice: [H, W]. Call it D times.
  virtual absl::Status Append(absl::Span<const uint8_t> slice) = 0;
  // REQUIRES: called once, and last.
  virtual absl::StatusOr<FileDigest> Commit() = 0;
};

}  // namespace traind
