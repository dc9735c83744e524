#include "common/publish/scoring_data.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>

#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "common/data/table/npy.h"
#include "common/data/table/sample_plan.h"
#include "common/data/table/series_places.h"
#include "common/data/volume/overlap.h"
#include "common/publish/mask_files.h"

namespace traind {

namespace {

// Returns the mean score over the test volumes that have a mask.
std::optional<double> OnMasks(const VolumeSet& set, Metric metric, const JoinedValues& values,
                              absl::Span<const int> largest) {
  double sum = 0;
  int64_t masks = 0;
  size_t begin = 0;
  for (const StoredVolume& volume : set.volumes(Split::kTest)) {
    if (volume.has_mask) {
      MaskScore score(set.values());
      const auto take = [&](int64_t z, absl::Span<const uint8_t> labels) {
        score.Add(labels, set.OwnMaskSlice(volume, z));
        set.ReleaseOwnMaskSlice(volume, z);
        return absl::OkStatus();
      };
      ReadAnswer(set, volume, values, begin, largest, take).IgnoreError();  // only `take` can fail
      sum += score.Score(metric.kind().of_masks);
      ++masks;
    }
    begin += static_cast<size_t>(volume.shape.voxels() * set.values());
  }
  if (masks == 0) return std::nullopt;
  return sum / static_cast<double>(masks);
}

}  // namespace

std::vector<float> TestTargets(const Table& table, size_t columns) {
  std::vector<float> wanted(static_cast<size_t>(table.schema().test_rows) * columns);
  for (size_t k = 0; k < columns; ++k) {
    const auto targets = table.TargetValue(Split::kTest, k);
    for (size_t i = 0; i < targets.size(); ++i) wanted[i * columns + k] = targets[i];
  }
  return wanted;
}

std::vector<int32_t> ScoringData::LabelsOf(absl::Span<const size_t> rows) const {
  const auto labels = table->TargetClass(Split::kTrain);
  std::vector<int32_t> wanted;
  wanted.reserve(rows.size());
  for (const size_t row : rows) wanted.push_back(labels[row]);
  return wanted;
}

std::vector<float> ScoringData::TargetsOf(absl::Span<const size_t> rows) const {
  std::vector<float> wanted(rows.size() * columns);
  const size_t known = volumes != nullptr ? 1 : columns;
  for (size_t k = 0; k < known; ++k) {
    const auto targets = table->TargetValue(Split::kTrain, k);
    for (size_t i = 0; i < rows.size(); ++i) wanted[i * columns + k] = targets[rows[i]];
  }
  return wanted;
}

std::vector<int32_t> ScoringData::StepsOf(absl::Span<const size_t> rows) const {
  std::vector<int32_t> wanted;
  if (train_steps.empty()) return wanted;
  wanted.reserve(rows.size());
  for (const size_t row : rows) wanted.push_back(train_steps[row]);
  return wanted;
}

double ScoringData::OnRows(absl::Span<const float> values, absl::Span<const size_t> rows) const {
  return OnRows(values, rows, Tuned());
}

double ScoringData::OnRows(absl::Span<const float> values, absl::Span<const size_t> rows,
                           const Tuned& tuned) const {
  if (classes()) return TunedScore(metric, columns, tuned, values, LabelsOf(rows));
  const double score = Score(metric, values, TargetsOf(rows), columns);
  return tuned.largest.empty() ? score : score + GainOf(tuned.largest, columns, values);
}

std::optional<double> ScoringData::OnTest(const JoinedValues& joined, const Tuned& tuned) const {
  if (!table->schema().test_has_target || test_rows() == 0) return std::nullopt;
  if (volumes != nullptr) return OnMasks(*volumes, metric, joined, tuned.largest);
  const std::vector<float> values = joined.Read();
  const double score =
      classes() ? TunedScore(metric, columns, tuned, values, table->TargetClass(Split::kTest))
                : Score(metric, values, TestTargets(*table, columns), columns);
  if (std::isnan(score)) return std::nullopt;
  return score;
}

absl::StatusOr<ScoringData> LoadScoringData(const PublishRequest& request) {
  ScoringData scoring;
  ASSIGN_OR_RETURN(scoring.metric, MetricByName(request.metric));
  ASSIGN_OR_RETURN(scoring.table, Table::Open(absl::StrCat(request.state_dir, "/", request.table)));
  if (IsClassification(scoring.metric) != scoring.classes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("metric ", request.metric, " does not suit the target of ", request.table));
  }
  scoring.columns = scoring.classes() ? scoring.table->schema().classes.size()
                                      : scoring.table->schema().targets();
  if (IsSegmentation(scoring.metric)) {
    ASSIGN_OR_RETURN(scoring.volumes, VolumeSet::Open(absl::StrCat(request.state_dir, "/",
                                                                   VolumesOfTable(request.table))));
    scoring.columns = static_cast<size_t>(scoring.volumes->row_values());
    const TableSchema& schema = scoring.table->schema();
    if (static_cast<int64_t>(scoring.volumes->volumes(Split::kTrain).size()) != schema.train_rows ||
        static_cast<int64_t>(scoring.volumes->volumes(Split::kTest).size()) != schema.test_rows) {
      return absl::DataLossError(absl::StrCat("the volumes are not of table ", request.table));
    }
  }
  const std::string path = absl::StrCat(request.state_dir, "/", FoldsPath(request.job));
  ASSIGN_OR_RETURN(const Array<int16_t> folds, ReadNpyInt16(path));
  const auto rows = static_cast<size_t>(scoring.table->schema().train_rows);
  if (folds.values.size() != rows || request.spec_folds < 1) {
    return absl::DataLossError(absl::StrCat(path, " is not of table ", request.table));
  }
  scoring.fold_rows.resize(static_cast<size_t>(request.spec_folds));
  for (size_t row = 0; row < rows; ++row) {
    const int16_t fold = folds.values[row];
    if (fold == -1) continue;  // no fold validates the row
    if (fold < 0 || fold >= request.spec_folds) {
      return absl::DataLossError(
          absl::StrCat(path, ": row ", row, " is of fold ", fold, " of ", request.spec_folds));
    }
    scoring.fold_rows[static_cast<size_t>(fold)].push_back(row);
  }
  // A damaged plan must not hold up an answer, because it only affects how folds are judged.
  const auto split = ReadSamplePlan(absl::StrCat(request.state_dir, "/", SamplesPath(request.job)));
  scoring.forward = split.ok() && split->kind == SplitKind::kForward;
  if (split.ok()) {
    scoring.train_steps = TrainSteps(*scoring.table, *split, folds.values);
    scoring.test_steps = TestSteps(*scoring.table, split->shape);
  }
  return scoring;
}

}  // namespace traind
