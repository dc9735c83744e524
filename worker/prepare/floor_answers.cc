#include "worker/prepare/floor_answers.h"

#include <memory>
#include <vector>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/data/table/npy.h"

namespace traind {
namespace {

absl::StatusOr<FileDigest> WriteTest(const std::string& path, const VolumeSet& set,
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
        const uint8_t voxel_label = label(slice[i * channels]);
        if (width > 1) {
          answers[i * width + voxel_label] = 1;
        } else {
          answers[i] = voxel_label;
        }
      }
      RETURN_IF_ERROR(out->Append(
          {reinterpret_cast<const char*>(answers.data()), answers.size() * sizeof(float)}));
      set.Release(volume, z, 1);
    }
  }
  return out->Commit();
}

}  // namespace

absl::StatusOr<Floor> AnswerByRules(const Table& table, const VolumeSet& set,
                                    const FloorFolds& folds, Metric metric,
                                    const VolumeRules& rules, const std::string& test_file) {
  Floor floor;
  floor.model = rules.model;
  const size_t rows = set.volumes(Split::kTrain).size();
  floor.oof.shape = {static_cast<int64_t>(rows), 1};
  for (size_t row = 0; row < rows; ++row) {
    const int fold = folds.fold_of[row];
    floor.oof.values.push_back(
        rules.score(row, static_cast<size_t>(fold < 0 ? folds.split.folds : fold)));
  }
  ASSIGN_OR_RETURN(const FileDigest test, WriteTest(test_file, set, rules.label));
  floor.test_file = test_file;
  floor.test_sha256 = test.sha256;
  floor.score = OofScore(table, folds, metric, floor.oof.values);
  return floor;
}

}  // namespace traind
