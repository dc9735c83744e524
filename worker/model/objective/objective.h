// The loss that training minimises, as the Job's spec states it.
#pragma once

#include <absl/strings/string_view.h>

#include <optional>
#include <vector>

namespace traind {

enum class LossKind {
  kCrossEntropy,  // classification: cross-entropy of the softmax of one logit per class
  kMse,           // regression; all but kSmape on standardised values
  kMae,
  kHuber,
  kSmape,  // 2 |p - y| / (|p| + |y| + 1e-6), in the target's own unit
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
        LossKind::kDiceBce, LossKind::kDiceCe}) {
    if (name == LossName(loss)) return loss;
  }
  return std::nullopt;
}

// Whether the targets are masks, [B, 1, D, H, W].
inline bool IsOfMasks(LossKind loss) {
  return loss == LossKind::kDiceBce || loss == LossKind::kDiceCe;
}

struct Objective {
  LossKind loss = LossKind::kCrossEntropy;
  double label_smoothing = 0;  // 0-1, cross-entropy only
  // Cross-entropy only, one per class; empty: all 1. A row's loss is multiplied by the weight
  // of its class. ObjectiveLoss and ObjectiveGradient take the mean over rows, so that the losses
  // of micro-batches and ranks add up; the Learner divides by the weights at the end of a step.
  std::vector<float> class_weights;
  double huber_delta = 1;  // the loss grows linearly beyond it
};

}  // namespace traind
