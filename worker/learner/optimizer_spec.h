// The optimizer of a training, as the Job's spec states it. Names, formulas and
// defaults are PyTorch's.
#pragma once

#include <absl/strings/string_view.h>

#include <optional>

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

struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::kAdamW;
  double weight_decay = 0.01;         // adamw: decoupled; others: L2, added to the gradient
  double beta1 = 0.9, beta2 = 0.999;  // adamw, adam
  double eps = 1e-8;                  // adamw, adam, rmsprop
  double momentum = 0;                // sgd, rmsprop
  bool nesterov = false;              // sgd; REQUIRES: momentum > 0
  double alpha = 0.99;                // rmsprop
};

}  // namespace traind
