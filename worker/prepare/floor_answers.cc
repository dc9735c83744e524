#include "worker/prepare/floor_answers.h"

#include <memory>
#include <vector>

#include "common/status_macros.h"
#include "common/table/npy.h"

namespace traind {

absl::StatusOr<FileDigest> WriteFloorAnswers(const std::string& path, const VolumeSet& set,
                                             const std::function<uint8_t(float)>& label) {
  ASSIGN_OR_RETURN(const std::unique_ptr<DurableWriter> out, DurableWriter::Create(path));
  RETURN_IF_ERROR(out->Append(NpyHeaderText("<f4", {set.TestVoxels(), set.values()})));
  const auto width = static_cast<size_t>(set.values());
  std::vector<float> slice, answers;
  for (const StoredVolume& volume : set.volumes(Split::kTest)) {
    const auto channels = static_cast<size_t>(volume.shape.channels);
    slice.resize(static_cast<size_t>(volume.shape.slice()));
    for (int64_t z = 0; z < volume.shape.depth; ++z) {
      set.ReadSlice(volume, z, absl::MakeSpan(slice));
      answers.assign(slice.size() / channels * width, 0.0f);
      for (size_t i = 0; i < slice.size() / channels; ++i) {
        const uint8_t of_voxel = label(slice[i * channels]);
        if (width > 1) {
          answers[i * width + of_voxel] = 1;
        } else {
          answers[i] = of_voxel;
        }
      }
      RETURN_IF_ERROR(out->Append(
          {reinterpret_cast<const char*>(answers.data()), answers.size() * sizeof(float)}));
      set.Release(volume, z, 1);
    }
  }
  return out->Commit();
}

}  // namespace traind
