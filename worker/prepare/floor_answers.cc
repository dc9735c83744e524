#include "worker/prepare/floor_answers.h"

#include <memory>
#include <vector>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/data/table/npy.h"
#include "common/data/volume/answer_score.h"

namespace traind {
namespace {

absl::StatusOr<FileDigest> WriteTest(const std::string& path, const VolumeSet& set,
                                     const VoxelLabel& label) {
  ASSIGN_OR_RETURN(const std::unique_ptr<DurableWriter> out, DurableWriter::Create(path));
  RETURN_IF_ERROR(out->Append(NpyHeaderText("<f4", {set.TestVoxels(), set.values()})));
  RETURN_IF_ERROR(AnswerVolumes(set, label, [&](absl::Span<const float> values) {
    return out->Append(
        {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }));
  return out->Commit();
}

// Scores the mask that would answer. out: [set.row_values()].
absl::Status ScoreAnswer(const VolumeSet& set, const StoredVolume& volume, Metric metric,
                         const VoxelLabel& label, float* out) {
  AnswerScore score(set, volume);
  std::vector<float> values;
  for (int64_t z = 0; z < volume.shape.depth; ++z) {
    AnswerSlice(set, volume, z, label, values);
    RETURN_IF_ERROR(score.Add(values));
  }
  RETURN_IF_ERROR(score.Finish());
  score.Read(metric.kind().of_masks, out);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Floor> AnswerByRules(const Table& table, const VolumeSet& set,
                                    const FloorFolds& folds, Metric metric,
                                    const VolumeRules& rules, const std::string& test_file,
                                    VolumeFloorModel& model) {
  Floor floor;
  floor.model = rules.model;
  const auto volumes = set.volumes(Split::kTrain);
  const size_t rows = volumes.size();
  const auto width = static_cast<size_t>(set.row_values());
  const VolumeTreatment& treatment = set.treatment();
  floor.oof.shape = {static_cast<int64_t>(rows), set.row_values()};
  floor.oof.values.resize(rows * width);
  std::vector<float> scores;
  for (size_t row = 0; row < rows; ++row) {
    const int fold = folds.fold_of[row];
    const size_t rule = static_cast<size_t>(fold < 0 ? folds.split.folds : fold);
    float* const out = floor.oof.values.data() + row * width;
    if (treatment.largest_component || treatment.choose_components || volumes[row].resampled()) {
      RETURN_IF_ERROR(ScoreAnswer(set, volumes[row], metric, rules.LabelBy(rule), out));
    } else {
      *out = rules.score(row, rule);
    }
    scores.push_back(*out);
  }
  ASSIGN_OR_RETURN(const FileDigest test,
                   WriteTest(test_file, set, rules.LabelBy(rules.labels.size() - 1)));
  floor.test_file = test_file;
  floor.test_sha256 = test.sha256;
  model.name = rules.model;
  model.bins = rules.bins;
  model.labels = rules.labels.back();
  floor.score = OofScore(table, folds, metric, scores);
  return floor;
}

}  // namespace traind
