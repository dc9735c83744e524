// The part of a JobSpec that training needs.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <cstdint>
#include <optional>
#include <string>

#include "common/data/volume/sliding_window.h"
#include "common/metrics/metrics.h"
#include "worker/data/image_pixels.h"
#include "worker/data/patch_changes.h"
#include "worker/data/text_source.h"
#include "worker/device/precision.h"
#include "worker/device/transport.h"
#include "worker/learner/optimizer_spec.h"
#include "worker/learner/speed_paths.h"
#include "worker/model/networks/model_spec.h"
#include "worker/model/objective/objective.h"
#include "worker/pretrained/pretrained_weights.h"
#include "worker/train/schedule.h"

namespace traind {

// What the learning rate is multiplied by, for each rank more.
enum class RateScaling { kNone, kLinear, kSqrt };

// What the spec says of the ranks' meeting; empty, 0: as the Worker says.
struct RendezvousSpec {
  std::string host;
  int port = 0;  // of fold 0; fold k: port + k; model s of it: that + s x folds
  absl::Duration timeout;
};

// Of volumes.
struct PatchSpec {
  Extent3 size{16, 32, 32};
  int64_t per_volume = 4;  // in an epoch
  int classes = 1;         // of foreground
  PatchChanges changes;
};

struct TrainingSpec {
  bool classification = true;
  std::optional<PatchSpec> patches;  // segmentation alone
  Metric metric;
  uint64_t seed = 0;
  int folds = 5;
  ModelSpec model;
  std::optional<PretrainedSpec> pretrained;  // none: all weights start at random
  TextColumnsSpec text;
  int epochs = 20;
  int64_t batch = 0;                   // per rank; 0: auto
  int64_t accumulation = 1;            // batches per optimizer step
  std::optional<Precision> precision;  // none: auto
  int patience = 5;                    // 0: never
  bool shuffle = true;

  Objective objective;
  bool balanced_classes = false;  // class weights from the fold's training rows
  OptimizerSpec optimizer;
  double learning_rate = 1e-3;
  RateScaling rate_scaling = RateScaling::kNone;
  ScheduleSpec schedule;
  double clip_norm = 5;
  double ema_decay = 0;
  bool gradient_norm = false;  // reported although nothing is clipped

  int checkpoint_epochs = 0;       // 0: by time alone
  int keep_best = 0;               // checkpoints, besides the newest
  std::optional<bool> recompute;   // activations; none: when memory runs out
  bool shorten_sequences = false;  // when memory runs out
  Transport transport = Transport::kAuto;
  RendezvousSpec rendezvous;
  SpeedPaths paths;
  bool images = false;  // each row has one
  Augmentation augmentation;
  double mixup = 0;  // alpha; 0: none
};

// json: a resolved JobSpec (proto/job.proto) as protobuf writes it, keys in
// snake_case; what is left out has its default.
// Errors: InvalidArgument names the field's path.
absl::StatusOr<TrainingSpec> ParseTrainingSpec(absl::string_view json);

}  // namespace traind
