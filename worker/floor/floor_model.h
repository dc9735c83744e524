// The model behind a Job's floor: it predicts later rows as it predicted the test rows.
#pragma once

#include <absl/types/span.h>

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "common/data/table/feature_reader.h"
#include "worker/floor/floor_encoder.h"
#include "worker/floor/linear_model.h"

namespace traind {

// Converts a model's values to the target's unit: times deviation, plus mean, clamped to the range
// of the rows that the model was fitted on.
struct ValueScale {
  double mean = 0, deviation = 1;
  float low = std::numeric_limits<float>::lowest();
  float high = std::numeric_limits<float>::max();
};

// The models that are fitted on the training rows of one fold.
struct FloorFold {
  FloorEncoder encoder;
  std::vector<LinearModel> models;  // one; for a regression one per target
  std::vector<ValueScale> scales;   // [target]; empty: the outputs are probabilities

  // The encoded rows' answers, [rows.rows, outputs].
  void Predict(const DesignRows& rows, size_t outputs, absl::Span<float> out) const;
};

// The answer is the mean over the folds. Threads: immutable.
struct FloorModel {
  std::string job;
  std::string name;          // prior, mean, logistic, ridge
  std::string table_sha256;  // of the table that it was fitted on
  InputSchema input;
  std::vector<float> prior;    // [outputs]: the answer if there are no folds
  size_t most_text_bytes = 0;  // read of each text
  std::vector<FloorFold> folds;

  // The link of each fold's models.
  static Link LinkOf(const InputSchema& input);
  // Number of outputs of each fold's models, without the one that kLogistic implies.
  static size_t OutputsOf(const InputSchema& input);

  // out: float32 [rows.size(), outputs], probabilities or values of the given rows.
  // REQUIRES: layout was made from input.features.
  void Predict(const FloorLayout& layout, const FloorRows& from, absl::Span<const size_t> rows,
               absl::Span<float> out) const;
};

}  // namespace traind
