// The settings of a training's optimizer. Names, formulas and defaults are PyTorch's.
#pragma once

#include <absl/strings/string_view.h>

#include <optional>

#include "proto/plain/job.h"

namespace traind {

enum class OptimizerKind {
  kAdamW,    // decoupled weight decay (Loshchilov, Hutter 2019)
  kAdam,     // Kingma, Ba 2015
  kSgd,      // with Nesterov's or Polyak's momentum
  kRmsProp,  // Hinton 2012
};

inline absl::string_view OptimizerName(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kAdamW:
      return "adamw";
    case OptimizerKind::kAdam:
      return "adam";
    case OptimizerKind::kSgd:
      return "sgd";
    case OptimizerKind::kRmsProp:
      return "rmsprop";
  }
  return "";
}

inline std::optional<OptimizerKind> ParseOptimizer(absl::string_view name) {
  for (const OptimizerKind kind : {OptimizerKind::kAdamW, OptimizerKind::kAdam, OptimizerKind::kSgd,
                                   OptimizerKind::kRmsProp}) {
    if (name == OptimizerName(kind)) return kind;
  }
  return std::nullopt;
}

// An optimizer as it runs: the spec with the defaults that depend on its kind.
struct OptimizerSettings {
  explicit OptimizerSettings(const plain::OptimizerSpec& spec = {})
      : beta1(spec.beta1),
        beta2(spec.beta2),
        eps(spec.eps),
        nesterov(spec.nesterov),
        alpha(spec.alpha) {}

  OptimizerKind kind = OptimizerKind::kAdamW;
  double weight_decay = 0.01;  // adamw: decoupled; the others: L2, in the gradient
  double beta1, beta2;         // adamw, adam
  double eps;                  // adamw, adam, rmsprop
  double momentum = 0;         // sgd, rmsprop
  bool nesterov;               // sgd; REQUIRES: momentum > 0
  double alpha;                // rmsprop
};

}  // namespace traind
