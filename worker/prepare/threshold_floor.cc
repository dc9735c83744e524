#include "worker/prepare/threshold_floor.h"

#include <algorithm>
#include <array>

#include "common/data/volume/overlap.h"
#include "worker/floor/intensity_bins.h"
#include "worker/prepare/floor_answers.h"

namespace traind {
namespace {

constexpr size_t kBins = IntensityBins::kCount;

// [2][kBins]: scores with the bins at or above b as foreground, and with those below b.
using Scores = std::array<std::array<double, kBins>, 2>;

Scores ScoresOf(const StoredVolume& volume, const VoxelCounts& counts, Metric metric) {
  Scores scores;
  Overlap below;
  below.wanted = volume.foreground();
  for (size_t b = 0; b < kBins; ++b) {
    Overlap above;
    above.wanted = below.wanted;
    above.both = below.wanted - below.both;
    above.predicted = volume.shape.voxels() - below.predicted;
    scores[0][b] = above.Score(metric.kind().of_masks);
    scores[1][b] = below.Score(metric.kind().of_masks);
    below.both += counts[1][b];
    below.predicted += counts[0][b] + counts[1][b];
  }
  return scores;
}

struct Threshold {
  size_t side = 0, bin = 0;
};

Threshold BestOf(const std::vector<Scores>& scores, absl::Span<const int32_t> rows) {
  Threshold best;
  double most = -1;
  for (size_t side = 0; side < 2; ++side) {
    for (size_t bin = 0; bin < kBins; ++bin) {
      double sum = 0;
      for (const int32_t row : rows) sum += scores[static_cast<size_t>(row)][side][bin];
      if (sum <= most) continue;
      most = sum;
      best = {side, bin};
    }
  }
  return best;
}

}  // namespace

absl::StatusOr<Floor> ThresholdFloor(const Table& table, const VolumeSet& set,
                                     const FloorFolds& folds, Metric metric,
                                     const std::string& test_file, VolumeFloorModel& model) {
  const auto volumes = set.volumes(Split::kTrain);
  const IntensityBins bins = BinsOf(volumes);
  std::vector<Scores> scores;
  for (const StoredVolume& volume : volumes) {
    scores.push_back(ScoresOf(volume, CountVoxels(set, volume, bins), metric));
  }
  std::vector<Threshold> fold_thresholds;
  // An index beyond the folds selects all usable rows.
  for (int fold = 0; fold <= folds.split.folds; ++fold) {
    fold_thresholds.push_back(
        BestOf(scores, TrainingRows(table, folds.fold_of, fold, folds.split)));
  }
  VolumeRules rules;
  rules.model = "threshold";
  rules.score = [&](size_t row, size_t rule) {
    return static_cast<float>(scores[row][fold_thresholds[rule].side][fold_thresholds[rule].bin]);
  };
  rules.bins = bins;
  for (const Threshold& threshold : fold_thresholds) {
    std::vector<uint8_t>& labels = rules.labels.emplace_back();
    for (size_t bin = 0; bin < kBins; ++bin) {
      labels.push_back((bin >= threshold.bin) == (threshold.side == 0) ? 1 : 0);
    }
  }
  return AnswerByRules(table, set, folds, metric, rules, test_file, model);
}

}  // namespace traind
