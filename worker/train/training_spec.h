// The part of a JobSpec that training needs.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <optional>

#include "common/data/volume/sliding_window.h"
#include "common/data/weights/image_config.h"
#include "common/metrics/metrics.h"
#include "proto/plain/job.h"
#include "worker/data/image_pixels.h"
#include "worker/data/patch_changes.h"
#include "worker/data/target_transform.h"
#include "worker/device/precision.h"
#include "worker/device/transport.h"
#include "worker/learner/optimizer_settings.h"
#include "worker/learner/speed_paths.h"
#include "worker/model/networks/model_spec.h"
#include "worker/model/objective/objective.h"
#include "worker/pretrained/pretrained_weights.h"

namespace traind {

// How the learning rate grows with the number of Ranks.
enum class RateScaling { kNone, kLinear, kSqrt };

// The patches that are cut from volumes.
struct PatchSpec {
  Extent3 size{};
  int64_t per_volume = 0;  // in an epoch
  int classes = 1;         // of foreground
  PatchChanges changes;
};

// Made by ParseTrainingSpec, which sets every field; proto/job.proto has the defaults.
struct TrainingSpec {
  bool classification = true;
  std::optional<PatchSpec> patches;  // segmentation alone
  Metric metric;
  uint64_t seed = 0;
  int folds = 0;
  ModelSpec model;
  std::optional<PretrainedSpec> pretrained;  // none: all weights start at random
  std::optional<ImageConfig> images_seen;    // by a pretrained network; none: it is of no folder
  plain::TextSpec text;                      // no columns: samples have no text
  int epochs = 0;
  int64_t batch = 0;                   // per rank; 0: auto
  int64_t accumulation = 0;            // batches per optimizer step
  std::optional<Precision> precision;  // none: auto
  bool half_answers = true;            // predictions may be in the half precision of the training
  int patience = 0;                    // 0: never
  bool shuffle = false;

  Objective objective;
  bool balanced_classes = false;                   // class weights from the fold's training rows
  TransformKind transform = TransformKind::kNone;  // of the targets
  OptimizerSettings optimizer;
  double learning_rate = 0;
  bool find_rate = false;  // by a range test, in place of learning_rate
  RateScaling rate_scaling = RateScaling::kNone;
  plain::ScheduleSpec schedule;
  double clip_norm = 0;
  double ema_decay = 0;
  bool ema_warmup = false;
  double swa = 0;         // the share of the epochs, at their end, whose weights are averaged
  int frozen_epochs = 0;  // the first ones, in which only the head is trained
  double frozen_rate = 0;
  int64_t thaw_layers = 0;  // that each epoch after them trains more; 0: all at once
  double layer_decay = 1;
  bool decay_norms = true;
  bool gradient_norm = false;  // reported although nothing is clipped

  bool checkpoints_by_cost = false;  // the spec asks for no time between them
  int checkpoint_epochs = 0;         // 0: by time alone
  int keep_best = 0;                 // checkpoints, besides the newest
  std::optional<bool> recompute;     // activations; none: when memory runs out
  bool shorten_sequences = false;    // when memory runs out
  Transport transport = Transport::kAuto;
  int ranks = 1;                     // that were asked for; a gang that has lost a host has fewer
  plain::RendezvousSpec rendezvous;  // empty, 0: as the Worker says
  SpeedPaths paths;
  bool images = false;  // each row has one
  Augmentation augmentation;
  double mixup = 0, cutmix = 0;  // alpha; 0: none
};

// json: a resolved JobSpec (proto/job.proto) as protobuf writes it, keys in
// snake_case; what is left out has its default.
// trial: which of the spec's trials, where it has some.
// Errors: InvalidArgument names the field's path.
absl::StatusOr<TrainingSpec> ParseTrainingSpec(absl::string_view json, int trial = 0);

}  // namespace traind
