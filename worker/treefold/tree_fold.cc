#include "worker/treefold/tree_fold.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "common/data/table/negative_targets.h"
#include "common/data/table/npy.h"
#include "common/data/table/sample_plan.h"
#include "common/job_rules/task_rules.h"
#include "common/metrics/metrics.h"

namespace traind {
namespace {

absl::Status CheckFits(const TableSchema& schema, const SplitSpec& split, const TreeSpec& spec) {
  if (spec.classification != (schema.target_kind == TargetKind::kClasses)) {
    return absl::InvalidArgumentError(
        absl::StrCat("task.type does not fit the target column ", schema.target));
  }
  if (schema.targets() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.", spec.kind, ": boosted trees take one target, but the spec names ",
                     schema.targets()));
  }
  if (split.shape.history() > 0 && split.shape.horizon < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.", spec.kind, ": boosted trees forecast from data.horizon 1 on"));
  }
  if (spec.classification && schema.classes.size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("the target column ", schema.target, " has one class alone"));
  }
  const size_t weights = spec.class_weights.size();
  if (weights > 0 && weights != schema.classes.size()) {
    return absl::InvalidArgumentError(absl::StrCat("spec field train.loss.weights: ", weights,
                                                   " weights for ", schema.classes.size(),
                                                   " classes"));
  }
  return absl::OkStatus();
}

}  // namespace

double TreeFold::Score(Metric metric, absl::Span<const float> answers) const {
  return classes.empty() ? traind::Score(metric, answers, values)
                         : traind::Score(metric, answers, outputs, classes);
}

double TreeFold::Loss(absl::Span<const float> answers) const {
  constexpr double kLeastProbability = 1e-12;
  double sum = 0;
  int64_t count = 0;
  for (size_t i = 0; i < classes.size(); ++i) {
    if (classes[i] < 0) continue;
    const float p = answers[i * static_cast<size_t>(outputs) + static_cast<size_t>(classes[i])];
    sum -= std::log(std::max<double>(p, kLeastProbability));
    ++count;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    const double error = static_cast<double>(answers[i]) - values[i];
    sum += error * error;
    ++count;
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

TreeMatrix TreeFold::EncodeValidation(size_t most) const {
  if (lags == nullptr) {
    return encoder->Encode(*table, Split::kTrain,
                           absl::MakeConstSpan(rows.validation).subspan(0, most));
  }
  return lags->Encode(absl::MakeConstSpan(validation_samples).subspan(0, most)).matrix;
}

Smearing TreeFold::ToValues(const Metric& metric, absl::Span<float> answers) const {
  for (size_t i = 0; lags != nullptr && i < answers.size(); ++i) {
    answers[i] = validation_base[i] + validation_scale[i] * answers[i];
  }
  const std::vector<TargetTransform>& transforms = encoder_state.transforms;
  Smearing smearing;
  if (WantsMeans(metric)) smearing = FitSmearing(transforms, answers, values);
  ToOwnUnit(transforms, smearing, answers);
  return smearing;
}

// An error in a series counts as it does in its own unit.
void TreeFold::LagData(const TreeSpec& spec, BoosterData& data) const {
  LagRows training = lags->Encode(lags->training());
  double sum = 0, squares = 0, weights = 0;
  for (size_t i = 0; i < training.base.size(); ++i) {
    const float scale = training.scale[i];
    const float learnt = (lags->Value(lags->training()[i]) - training.base[i]) / scale;
    data.targets.push_back(learnt);
    data.weights.push_back(spec.loss == TreeLoss::kAbsolute ? scale : scale * scale);
    sum += learnt;
    squares += static_cast<double>(learnt) * learnt;
    weights += data.weights.back();
  }
  const double count = static_cast<double>(data.targets.size());
  for (float& weight : data.weights) weight = static_cast<float>(weight * count / weights);
  if (table->schema().series.size() <= 1 || spec.loss == TreeLoss::kSmape) data.weights.clear();
  data.target_scale =
      std::max(1e-12, std::sqrt(std::max(0.0, squares / count - sum * sum / count / count)));
  data.encoder = lags.get();
  data.training = std::move(training.matrix);
  data.validation = EncodeValidation(validation_samples.size());
}

BoosterData TreeFold::DataOf(const TreeSpec& spec) const {
  BoosterData data;
  if (lags != nullptr) return LagData(spec, data), data;
  data.encoder = encoder.get();
  data.training = encoder->Encode(*table, Split::kTrain, rows.training);
  data.validation = encoder->Encode(*table, Split::kTrain, rows.validation);
  if (!spec.classification) {
    const absl::Span<const float> targets = table->TargetValue(Split::kTrain);
    for (const int32_t row : rows.training) {
      data.targets.push_back(targets[static_cast<size_t>(row)]);
    }
    for (float& target : data.targets) {
      if (encoder_state.transforms.empty()) break;
      target = static_cast<float>(Transformed(encoder_state.transforms[0], target));
    }
    data.target_scale = encoder_state.target_scale[0];
    return data;
  }
  const absl::Span<const int32_t> targets = table->TargetClass(Split::kTrain);
  data.classes = outputs;
  std::vector<float> weights = spec.class_weights;
  if (spec.balanced_classes) {
    weights = BalancedClassWeights(targets, rows.training, outputs);
  }
  for (const int32_t row : rows.training) {
    const int32_t of_row = targets[static_cast<size_t>(row)];
    data.targets.push_back(static_cast<float>(of_row));
    if (!weights.empty()) data.weights.push_back(weights[static_cast<size_t>(of_row)]);
  }
  return data;
}

absl::StatusOr<TreeFold> LoadTreeFold(const rank_protocol::Train& train, const TreeSpec& spec) {
  const std::string state = absl::StrCat(train.state_dir, "/");
  TreeFold fold;
  ASSIGN_OR_RETURN(fold.table, Table::Open(state + train.table));
  const TableSchema& schema = fold.table->schema();
  ASSIGN_OR_RETURN(const SplitSpec split, ReadSamplePlan(state + SamplesPath(train.job)));
  RETURN_IF_ERROR(CheckFits(schema, split, spec));
  ASSIGN_OR_RETURN(const auto folds, ReadNpyInt16(state + FoldsPath(train.job)));
  ASSIGN_OR_RETURN(fold.rows, SplitFold(*fold.table, folds.values, train.fold, split));
  if (RefusesNegativeTargets(spec.loss_kind)) {
    RETURN_IF_ERROR(CheckNoNegativeTargets(*fold.table, spec.loss_kind, fold.rows.training));
  }
  if (spec.transform == TransformKind::kLog) {
    RETURN_IF_ERROR(CheckPositiveTargets(*fold.table, fold.rows.training));
  }
  fold.outputs = spec.classification ? static_cast<int>(schema.classes.size()) : 1;
  fold.encoder_state =
      RowEncoder::Fit(fold.table, fold.rows.training, split.shape, TargetForm::kValue,
                      InputWidths::kFold, OutlierForm::kClamp, spec.transform)
          .state();
  fold.encoder = std::make_unique<const TreeEncoder>(fold.encoder_state, schema.features);
  if (split.shape.horizon > 0) {
    fold.lags =
        std::make_unique<LagEncoder>(fold.table, *fold.encoder, split, fold.rows.training,
                                     spec.time, spec.known_ahead, spec.loss == TreeLoss::kSmape);
    fold.validation_samples = fold.lags->Validation(folds.values, train.fold);
    LagRows validation = fold.lags->Encode(fold.validation_samples);
    fold.validation_base = std::move(validation.base);
    fold.validation_scale = std::move(validation.scale);
  } else if (fold.encoder->columns() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model.", spec.kind, ": the rows have no columns of numbers or categories to split"));
  }
  for (const int32_t row : fold.rows.validation) {
    const size_t at = static_cast<size_t>(row);
    if (spec.classification) {
      fold.classes.push_back(fold.table->TargetClass(Split::kTrain)[at]);
    } else {
      fold.values.push_back(fold.table->TargetValue(Split::kTrain)[at]);
    }
  }
  return fold;
}

}  // namespace traind
