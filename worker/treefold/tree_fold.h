// A fold's rows, ready for boosted trees.
#pragma once

#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/data/table/table.h"
#include "worker/data/fold_rows.h"
#include "worker/data/row_encoder.h"
#include "worker/rank_protocol/messages.h"
#include "worker/trees/booster.h"
#include "worker/trees/lag_encoder.h"
#include "worker/trees/tree_rows.h"
#include "worker/trees/tree_spec.h"

namespace traind {

struct TreeFold {
  std::shared_ptr<const Table> table;
  FoldRows rows;
  RowEncoder::State encoder_state;  // goes into model.json
  std::unique_ptr<const TreeEncoder> encoder;
  int outputs = 1;
  // Null where the task is no forecast.
  std::unique_ptr<LagEncoder> lags;
  std::vector<LagSample> validation_samples;             // empty where the task is no forecast
  std::vector<float> validation_base, validation_scale;  // see LagRows
  // The targets of the validation rows; one of the two is empty.
  std::vector<int32_t> classes;
  std::vector<float> values;

  double Score(Metric metric, absl::Span<const float> answers) const;
  // The log loss, or the mean squared error: which of equal scores is better.
  double Loss(absl::Span<const float> answers) const;
  // Returns the features of the first `most` validation rows.
  TreeMatrix EncodeValidation(size_t most) const;
  // Turns the trees' answers for validation rows into values. Returns what other rows' answers
  // need besides (ToOwnUnit).
  Smearing ToValues(const Metric& metric, absl::Span<float> answers) const;
  // Returns the rows, targets and weights from which trees grow.
  BoosterData DataOf(const TreeSpec& spec) const;

 private:
  void LagData(const TreeSpec& spec, BoosterData& data) const;
};

// Errors: those of Table::Open, ReadNpyInt16 and SplitFold; InvalidArgument where spec and table
// disagree, or trees cannot take such a table.
absl::StatusOr<TreeFold> LoadTreeFold(const rank_protocol::Train& train, const TreeSpec& spec);

}  // namespace traind
