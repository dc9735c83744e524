#include "worker/prepare/range_floor.h"

#include <algorithm>
#include <array>
#include <vector>

#include "common/data/volume/overlap.h"
#include "worker/floor/intensity_bins.h"
#include "worker/prepare/floor_answers.h"

namespace traind {
namespace {

constexpr size_t kBins = IntensityBins::kCount;

// The label of each bin: [bins].
using Labels = std::array<uint8_t, kBins>;

// Numbers of voxels with a value below each bin, inside a class and in total: [kBins + 1].
struct Below {
  std::vector<int64_t> inside, all;
};

// Returns the sums per class, [classes].
std::vector<Below> SumsOf(const VoxelCounts& counts) {
  std::vector<Below> sums(counts.size() - 1);
  for (size_t c = 0; c < sums.size(); ++c) {
    int64_t inside = 0, all = 0;
    for (size_t b = 0; b <= kBins; ++b) {
      sums[c].inside.push_back(inside);
      sums[c].all.push_back(all);
      if (b == kBins) break;
      inside += counts[c + 1][b];
      for (const std::vector<int64_t>& label_counts : counts) all += label_counts[b];
    }
  }
  return sums;
}

// Bins begin..end-1 as the range of a class, and its score.
struct Range {
  size_t begin = 0, end = kBins;
  double score = -1;
};

class RangeSearch {
 public:
  // sums: [volumes][classes].
  RangeSearch(const std::vector<std::vector<Below>>& sums, absl::Span<const int32_t> rows,
              size_t class_index, Metric metric)
      : sums_(sums), rows_(rows), class_(class_index), metric_(metric) {}

  Range Best() const {
    Range from_above = MoveEnds({}, /*begin_first=*/true);
    const Range from_below = MoveEnds({}, /*begin_first=*/false);
    return from_below.score > from_above.score ? from_below : from_above;
  }

 private:
  Range MoveEnds(Range range, bool begin_first) const {
    constexpr int kMostRounds = 16;
    bool begin = begin_first;
    for (int round = 0, still = 0; round < kMostRounds && still < 2; ++round, begin = !begin) {
      const double before = range.score;
      const size_t first = begin ? 0 : range.begin + 1, last = begin ? range.end - 1 : kBins;
      for (size_t at = first; at <= last; ++at) {
        Range moved = begin ? Range{at, range.end} : Range{range.begin, at};
        moved.score = Score(moved);
        if (moved.score > range.score) range = moved;
      }
      still = range.score > before ? 0 : still + 1;
    }
    return range;
  }

  double Score(const Range& range) const {
    double sum = 0;
    for (const int32_t row : rows_) {
      const Below& below = sums_[static_cast<size_t>(row)][class_];
      Overlap overlap;
      overlap.both = below.inside[range.end] - below.inside[range.begin];
      overlap.predicted = below.all[range.end] - below.all[range.begin];
      overlap.wanted = below.inside[kBins];
      sum += overlap.Score(metric_.kind().of_masks);
    }
    return sum;
  }

  const std::vector<std::vector<Below>>& sums_;
  const absl::Span<const int32_t> rows_;
  const size_t class_;
  const Metric metric_;
};

Labels LabelsFor(const std::vector<std::vector<Below>>& sums, absl::Span<const int32_t> rows,
                 size_t classes, Metric metric) {
  Labels labels{};
  std::array<double, kBins> score{};
  for (size_t c = 0; c < classes; ++c) {
    const Range range = RangeSearch(sums, rows, c, metric).Best();
    for (size_t b = range.begin; b < range.end; ++b) {
      if (range.score <= score[b]) continue;
      score[b] = range.score;
      labels[b] = static_cast<uint8_t>(c + 1);
    }
  }
  return labels;
}

float ScoreOf(const VoxelCounts& counts, const Labels& labels, Metric metric) {
  MaskScore score(static_cast<int64_t>(counts.size()));
  for (size_t wanted = 0; wanted < counts.size(); ++wanted) {
    for (size_t b = 0; b < kBins; ++b) {
      score.AddVoxels(labels[b], static_cast<uint8_t>(wanted), counts[wanted][b]);
    }
  }
  return static_cast<float>(score.Score(metric.kind().of_masks));
}

}  // namespace

absl::StatusOr<Floor> RangeFloor(const Table& table, const VolumeSet& set, const FloorFolds& folds,
                                 Metric metric, const std::string& test_file,
                                 VolumeFloorModel& model) {
  const auto volumes = set.volumes(Split::kTrain);
  const IntensityBins bins = BinsOf(volumes);
  std::vector<VoxelCounts> counts;
  std::vector<std::vector<Below>> sums;
  for (const StoredVolume& volume : volumes) {
    counts.push_back(CountVoxels(set, volume, bins));
    sums.push_back(SumsOf(counts.back()));
  }
  std::vector<Labels> fold_labels;
  // An index beyond the folds selects all usable rows.
  for (int fold = 0; fold <= folds.split.folds; ++fold) {
    fold_labels.push_back(LabelsFor(sums, TrainingRows(table, folds.fold_of, fold, folds.split),
                                    set.classes().size(), metric));
  }
  VolumeRules rules;
  rules.model = "ranges";
  rules.score = [&](size_t row, size_t rule) {
    return ScoreOf(counts[row], fold_labels[rule], metric);
  };
  rules.bins = bins;
  for (const Labels& labels : fold_labels) rules.labels.emplace_back(labels.begin(), labels.end());
  return AnswerByRules(table, set, folds, metric, rules, test_file, model);
}

}  // namespace traind
