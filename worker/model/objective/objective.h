// The loss that training minimises, as the Job's spec states it.
#pragma once

#include <absl/strings/string_view.h>

#include <optional>
#include <vector>

namespace traind {

enum class LossKind {
  kCrossEntropy,  // classification: cross-entropy of the softmax of one logit per class
  kMse,           // regression; the first three and kQuantile on standardised values
  kMae,
  kHuber,
  kSmape,     // 2 |p - y| / (|p| + |y| + 1e-6), in the target's own unit
  kQuantile,  // the pinball loss: q (y - p) where p is below y, else (1 - q) (p - y)
  // The network's output o is the logarithm of the answer, both answer and target in units of the
  // target's mean, so that an output of 0 is the mean. PyTorch's poisson_nll_loss, exp(o) - y o,
  // plus y log y - y: half the deviance, which is never negative.
  kPoisson,
  // Likewise: exp((2 - p) o) / (2 - p) - y exp((1 - p) o) / (1 - p), where p is tweedie_power. It
  // is half the deviance and a constant of the row.
  kTweedie,
  // Segmentation, on the logits of voxels: 1 - (2 sum pm + 1) / (sum p + sum m + 1) per sample,
  // plus the mean binary cross-entropy.
  kDiceBce,
  // Segmentation with several foreground classes, on the logits of the background and of each
  // class: 1 - the mean over the classes of (2 sum pm + 1) / (sum p + sum m + 1) per sample,
  // plus the mean cross-entropy. Equals MONAI's DiceCELoss(include_background=False,
  // softmax=True, smooth_nr=1, smooth_dr=1), and nnU-Net's loss but for its smoothing of 1e-5
  // (Isensee et al. 2021).
  kDiceCe,
};

inline absl::string_view LossName(LossKind loss) {
  switch (loss) {
    case LossKind::kCrossEntropy:
      return "cross_entropy";
    case LossKind::kMse:
      return "mse";
    case LossKind::kMae:
      return "mae";
    case LossKind::kHuber:
      return "huber";
    case LossKind::kSmape:
      return "smape";
    case LossKind::kQuantile:
      return "quantile";
    case LossKind::kPoisson:
      return "poisson";
    case LossKind::kTweedie:
      return "tweedie";
    case LossKind::kDiceBce:
      return "dice_bce";
    case LossKind::kDiceCe:
      return "dice_ce";
  }
  return "";
}

inline std::optional<LossKind> ParseLoss(absl::string_view name) {
  for (const LossKind loss :
       {LossKind::kCrossEntropy, LossKind::kMse, LossKind::kMae, LossKind::kHuber, LossKind::kSmape,
        LossKind::kQuantile, LossKind::kPoisson, LossKind::kTweedie, LossKind::kDiceBce,
        LossKind::kDiceCe}) {
    if (name == LossName(loss)) return loss;
  }
  return std::nullopt;
}

// Whether the targets are masks, [B, 1, D, H, W].
inline bool IsOfMasks(LossKind loss) {
  return loss == LossKind::kDiceBce || loss == LossKind::kDiceCe;
}

// Whether a network's output is the logarithm of the answer in units of the target's mean.
inline bool IsOfLogarithm(LossKind loss) {
  return loss == LossKind::kPoisson || loss == LossKind::kTweedie;
}

// From here on the exponential function of an output goes on in a straight line, so that no loss
// and no gradient overflows. An answer ends here: it is 10^13 times the target's mean.
inline constexpr float kMostExponent = 30;

// The unit of the answers and targets of IsOfLogarithm. mean: the target's over the training rows.
inline double UnitOfLogarithm(double mean) { return mean > 0 ? mean : 1; }

struct Objective {
  LossKind loss = LossKind::kCrossEntropy;
  double label_smoothing = 0;  // 0-1, cross-entropy only
  // Cross-entropy only, one per class; empty: all 1. A row's loss is multiplied by the weight
  // of its class. ObjectiveLoss and ObjectiveGradient take the mean over rows, so that the losses
  // of micro-batches and ranks add up; the Learner divides by the weights at the end of a step.
  std::vector<float> class_weights;
  double huber_delta = 1;      // the loss grows linearly beyond it
  double quantile = 0.5;       // kQuantile
  double tweedie_power = 1.5;  // kTweedie; between 1 and 2
};

}  // namespace traind
