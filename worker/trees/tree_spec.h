// The part of a JobSpec that training trees needs.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/metrics/metrics.h"
#include "proto/plain/job.h"
#include "worker/data/target_transform.h"

namespace traind {

// An epoch of the Plan is a hundredth of the rounds that the spec allows.
inline constexpr int64_t kTreeEpochs = 100;

enum class TreeLoss {
  kCrossEntropy,
  kSquared,
  kAbsolute,
  kHuber,
  kSmape,
  kQuantile,
  kPoisson,
  kTweedie,
};

struct TreeSpec {
  bool classification = true;
  Metric metric;
  uint64_t seed = 0;
  std::string time;                      // the column that orders the rows of a forecast
  std::vector<std::string> known_ahead;  // columns that a forecast knows of the row itself
  std::string kind;                      // the model's, as the spec names it
  // One of them is there.
  std::optional<plain::LightgbmSpec> lightgbm;
  std::optional<plain::XgboostSpec> xgboost;
  std::optional<plain::KernelSpec> kernel;
  int64_t rounds = 0;    // at most
  int64_t patience = 0;  // rounds without a better metric; 0: never
  TreeLoss loss = TreeLoss::kCrossEntropy;
  std::string loss_kind;                           // the same, as the spec names it
  double huber_delta = 1;                          // in standard deviations of the target
  double quantile = 0.5;                           // kQuantile
  double tweedie_power = 1.5;                      // kTweedie
  TransformKind transform = TransformKind::kNone;  // of the target
  std::vector<float> class_weights;                // empty: all alike
  bool balanced_classes = false;                   // class weights from the fold's training rows

  int64_t RoundsPerEpoch() const { return (rounds + kTreeEpochs - 1) / kTreeEpochs; }
};

// json: a resolved JobSpec. trial: which of its trials (common/job_rules/task_rules.h).
// Errors: InvalidArgument names the field: it contradicts another one, or trees cannot do it.
absl::StatusOr<TreeSpec> ParseTreeSpec(absl::string_view json, int trial);

}  // namespace traind
