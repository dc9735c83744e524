#include "worker/learner/learner_options.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

namespace traind {

absl::Status CheckLearnerOptions(const LearnerOptions& options, const LearnerData& data) {
  const auto wrong = [](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat("learner: ", what...));
  };
  const ModelShape& shape = options.shape;
  const Objective& objective = options.objective;
  const size_t outputs = static_cast<size_t>(std::max<int64_t>(0, shape.outputs));
  const bool classes = objective.loss == LossKind::kCrossEntropy;
  const size_t rows = static_cast<size_t>(std::max<int64_t>(0, data.rows.rows));
  if (outputs == 0 || shape.window < 1 || options.horizon < 0) {
    return wrong("outputs ", outputs, ", window ", shape.window, ", horizon ", options.horizon);
  }
  if (classes ? data.classes.size() != rows : data.values.size() != rows * outputs) {
    return wrong("the number of targets differs from the number of rows, ", rows);
  }
  if (IsOfMasks(objective.loss) && (outputs > 1) != (objective.loss == LossKind::kDiceCe)) {
    return wrong("the loss ", LossName(objective.loss), " does not suit ", outputs, " outputs");
  }
  if (!objective.class_weights.empty() && (!classes || objective.class_weights.size() != outputs)) {
    return wrong(objective.class_weights.size(), " class weights for ", outputs, " outputs");
  }
  if (options.target_mean.size() != options.target_scale.size() ||
      (!options.target_mean.empty() && options.target_mean.size() != outputs)) {
    return wrong(options.target_mean.size(), " target means and ", options.target_scale.size(),
                 " scales for ", outputs, " outputs");
  }
  if (rows > 0 && HasMedia(shape) != (data.rows.media != nullptr)) {
    return wrong("the data have media that the model does not take, or lack media that it needs");
  }
  if (NetworkOf(options.model) == nullptr) return wrong("no network");
  if (options.optimizer.nesterov && options.optimizer.momentum <= 0) {
    return wrong("nesterov needs momentum > 0");
  }
  for (size_t row = 0; classes && row < rows; ++row) {
    if (data.classes[row] >= shape.outputs) {
      return wrong("row ", row, " has class ", data.classes[row], ", but there are ", outputs,
                   " classes");
    }
  }
  return CheckCodes(shape, data.rows);
}

absl::Status CheckCodes(const ModelShape& shape, const EncodedRows& rows) {
  const size_t columns = shape.cardinalities.size();
  for (size_t i = 0; i < rows.codes.size() && columns > 0; ++i) {
    const int64_t cardinality = shape.cardinalities[i % columns];
    if (rows.codes[i] < 0 || rows.codes[i] >= cardinality) {
      return absl::InvalidArgumentError(
          absl::StrCat("row ", i / columns, " has code ", rows.codes[i], " in categorical input ",
                       i % columns, ", which has ", cardinality, " codes"));
    }
  }
  return absl::OkStatus();
}

}  // namespace traind
