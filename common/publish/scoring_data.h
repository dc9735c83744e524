// The data that scoring a Job's predictions needs: its table, its metric and its folds.
#pragma once

#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/data/table/table.h"
#include "common/data/volume/volume_set.h"
#include "common/metrics/metrics.h"
#include "common/publish/publisher.h"
#include "common/publish/test_values.h"

namespace traind {

// The data against which predictions are scored.
// Threads: immutable.
struct ScoringData {
  std::shared_ptr<const Table> table;
  std::shared_ptr<const VolumeSet> volumes;  // of the table's rows; null: it has no volumes
  Metric metric;
  size_t columns = 1;  // C in common/base/job_layout.h; of volumes VolumeSet::row_values()
  std::vector<std::vector<size_t>> fold_rows;  // [fold]: its rows, ascending
  // In a forward split, folds are trained on more and more rows, so an early one may be useless.
  bool forward = false;
  // Of a forecast: how many rows ahead each row is (series_places.h); else empty.
  std::vector<int32_t> train_steps, test_steps;

  bool classes() const { return table->schema().target_kind == TargetKind::kClasses; }
  int64_t test_rows() const { return table->schema().test_rows; }
  // Number of values in a test.npy: test_rows x C; for volumes VolumeSet::values() per voxel.
  size_t test_values() const {
    return volumes != nullptr ? static_cast<size_t>(volumes->TestVoxels() * volumes->values())
                              : static_cast<size_t>(test_rows()) * columns;
  }
  // The labels or targets ([rows, C]) of training rows.
  std::vector<int32_t> LabelsOf(absl::Span<const size_t> rows) const;
  std::vector<float> TargetsOf(absl::Span<const size_t> rows) const;
  std::vector<int32_t> StepsOf(absl::Span<const size_t> rows) const;
  // Scores values of training rows. values: [rows.size(), C], those of the rows in `rows`.
  double OnRows(absl::Span<const float> values, absl::Span<const size_t> rows) const;
  double OnFold(absl::Span<const float> values, int fold) const {
    return OnRows(values, fold_rows[static_cast<size_t>(fold)]);
  }
  // The same, adjusted.
  double OnRows(absl::Span<const float> values, absl::Span<const size_t> rows,
                const Tuned& tuned) const;
  // Scores the values of a test.npy, adjusted; for volumes they are read slice by slice. nullopt:
  // the test file lacks the target, or all masks.
  std::optional<double> OnTest(const JoinedValues& values, const Tuned& tuned) const;
};

// Returns the targets of the test rows, [test_rows, columns], row-major.
std::vector<float> TestTargets(const Table& table, size_t columns);

// InvalidArgument: the metric does not suit the target; DataLoss: the folds belong to another
// table.
absl::StatusOr<ScoringData> LoadScoringData(const PublishRequest& request);

}  // namespace traind
