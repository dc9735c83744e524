// Reads any bytes as a file of a volume: NPY, NPZ, TIFF or NIfTI.
#include <vector>

#include "common/data/volume/mask_reader.h"
#include "common/data/volume/volume_reader.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/scratch.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace traind;
  static const auto& scratch = *new Scratch;
  const std::string path = scratch.Write("volume", Bytes(data, size));
  const auto volume = OpenVolume(path);
  if (!volume.ok()) return 0;
  const VolumeShape& shape = (*volume)->shape();
  Check(shape.depth > 0 && shape.slice() > 0, "a volume has voxels");
  // A header may promise much more than a small file holds.
  if (shape.slice() > 1 << 20) return 0;
  std::vector<float> slice(static_cast<size_t>(shape.slice()));
  for (const int64_t z : {int64_t{0}, shape.depth / 2, shape.depth - 1, int64_t{0}}) {
    if (!(*volume)->ReadSlice(z, absl::MakeSpan(slice)).ok()) break;
  }
  const auto mask = MaskReader::Open(path, shape, 3);
  if (!mask.ok()) return 0;
  std::vector<uint8_t> labels(static_cast<size_t>(shape.height * shape.width));
  if (!(*mask)->ReadSlice(0, absl::MakeSpan(labels)).ok()) return 0;
  for (const uint8_t label : labels) Check(label <= 3, "a label is one of the classes");
  return 0;
}
