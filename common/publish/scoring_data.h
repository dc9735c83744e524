// What a Job's predictions are judged against: its table, its metric and its folds.
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

// Threads: immutable.
struct ScoringData {
  std::shared_ptr<const Table> table;
  std::shared_ptr<const VolumeSet> volumes;  // of its rows; null: they have none
  Metric metric;
  size_t columns = 1;                          // C of common/base/job_layout.h
  std::vector<std::vector<size_t>> fold_rows;  // [fold]: its rows, ascending
  // Folds are trained on more and more rows, so that an early one may be of no use.
  bool forward = false;

  bool classes() const { return table->schema().target_kind == TargetKind::kClasses; }
  int64_t test_rows() const { return table->schema().test_rows; }
  // Of a test.npy: test_rows x C; of volumes VolumeSet::values() a voxel.
  size_t test_values() const {
    return volumes != nullptr ? static_cast<size_t>(volumes->TestVoxels() * volumes->values())
                              : static_cast<size_t>(test_rows()) * columns;
  }
  // values: [rows.size(), C], those of the training rows named by `rows`.
  double OnRows(absl::Span<const float> values, absl::Span<const size_t> rows) const;
  double OnFold(absl::Span<const float> values, int fold) const {
    return OnRows(values, fold_rows[static_cast<size_t>(fold)]);
  }
  // values: those of a test.npy. Empty: the test file lacks the target, or all masks. Of volumes
  // they are read slice by slice.
  std::optional<double> OnTest(const JoinedValues& values) const;
};

// InvalidArgument: the metric does not suit the target; DataLoss: the folds are not of the table.
absl::StatusOr<ScoringData> LoadScoringData(const PublishRequest& request);

}  // namespace traind
