// A checkpoint is checkpoint-<step>.safetensors and then its manifest checkpoint-<step>.json,
// which holds the SHA-256 of the former. Without a manifest there is no checkpoint.
// Formats: docs/FORMATS.md.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "worker/model/networks/parameter_layout.h"

namespace traind {

// The complete state that a run needs to continue as if it had never stopped. Random numbers
// are functions of (seed, fold, epoch, step), so no generator state is stored.
struct Checkpoint {
  // The owner. A resume with other values is refused.
  std::string job;
  int64_t attempt = 0;  // the Attempt that wrote it; another one may resume it
  int fold = 0;
  uint64_t seed = 0;
  std::string table_sha256;
  std::string model = "mlp";        // architecture
  std::string optimizer = "adamw";  // a resume with another optimizer is refused, too

  // The position, always between two optimizer steps.
  int64_t step = 0;      // optimizer steps done
  int64_t epoch = 0;     // full epochs done
  int64_t position = 0;  // rows of the epoch's order that are done, over all ranks
  // Passes over all rows that were made; fewer than `epoch` where epochs were shortened. The
  // manifest calls it "passes".
  double epochs_seen = 0;
  double epoch_fraction = 0;  // epochs done, with the part of the current one
  double epoch_loss_sum = 0;  // of rank 0, since the epoch began
  double epoch_loss_rows = 0;

  // The settings of the training.
  int world_size = 1;
  int batch = 0;           // per rank and micro-batch
  int64_t step_rows = 0;   // per optimizer step, over all ranks and micro-batches
  bool recompute = false;  // activation checkpointing
  int64_t window = 0;      // shortened number of time steps per sample; 0: not shortened
  std::string precision;
  std::string answers_in;  // the precision of predictions; empty: not chosen yet, float32
  int planned_epochs = 0;
  int64_t warmup_steps = 0;
  double learning_rate = 0;          // peak of the schedule
  int64_t optimizer_steps = 0;       // less than step if fp16 skipped steps
  int64_t body_steps = 0;            // of these, with a body that was trained, too
  double frozen_passes = 0;          // of epochs_seen, with a body that was not
  std::vector<int64_t> layer_steps;  // of each layer of the body; empty: all have body_steps
  int64_t averaged = 0;  // weights that the average has: of epochs (train.swa) or steps (train.ema)
  bool rate_found = false;  // learning_rate is that of a range test
  double loss_scale = 0;    // fp16 only
  int64_t growth_tracker = 0;

  // Early stopping.
  bool has_best = false;
  double best_metric = 0;
  double best_loss = 0;
  double best_epoch = 0;
  // Of transformed targets: worker/data/target_transform.h.
  std::vector<std::vector<double>> best_smearing;
  int64_t epochs_without_better = 0;
  double patience_metric = 0;  // the best one's at the last end of an epoch

  // The values of all parameters by slot, in the layout's order: "weights", "best_weights" and
  // the optimizer's slots. "best_weights" are the weights that predict; a checkpoint to be
  // written may omit them if they equal the weights. Slot names consist of lower-case
  // letters, digits and '_'.
  std::map<std::string, absl::Span<const float>> slots;
  std::shared_ptr<const void> owner;  // keeps the memory of the slots alive
};

// Everything but the slots as JSON, for a rank that cannot read the file itself.
std::string EncodeFields(const Checkpoint& checkpoint);
absl::StatusOr<Checkpoint> DecodeFields(const std::string& json);

struct SavedCheckpoint {
  std::string manifest;  // relative to the state folder
  std::string sha256;    // of the safetensors file
  int64_t bytes = 0;
};

// Writes a checkpoint, which is durable on return. Copies nothing. `dir` is an existing folder,
// relative to the state folder. Errors: those of WriteFileDurably.
absl::StatusOr<SavedCheckpoint> WriteCheckpoint(const std::string& state_dir,
                                                const std::string& dir,
                                                const ParameterLayout& layout,
                                                const Checkpoint& checkpoint);

// Reads a checkpoint. The slots point into the file, which stays mapped while `owner` lives.
// Errors: NotFound; DataLoss says how the file is damaged; FailedPrecondition: the checkpoint
// is sound, but differs from `expected` in model, optimizer, dtype, table, fold or seed (job
// and attempt may differ), or lacks one of its slots.
absl::StatusOr<Checkpoint> ReadCheckpoint(const std::string& state_dir, const std::string& manifest,
                                          const ParameterLayout& layout,
                                          const Checkpoint& expected);

struct FoundCheckpoint {
  Checkpoint checkpoint;
  std::string manifest;
};

// Reads the newest sound checkpoint in the folder of `manifest`. It may be newer than `manifest`,
// which is the last one that traind heard of: the Rank has pruned that one if it went on for some
// time while traind was away. NotFound: there is none. Adds a warning for each newer checkpoint,
// which is damaged or belongs to another model.
absl::StatusOr<FoundCheckpoint> FindCheckpoint(const std::string& state_dir,
                                               const std::string& manifest,
                                               const ParameterLayout& layout,
                                               const Checkpoint& expected,
                                               std::vector<std::string>& warnings);

// Removes all checkpoints of a folder but the newest `newest` and those of the steps `keep`.
// Removes each manifest first.
absl::Status PruneCheckpoints(const std::string& state_dir, const std::string& dir, int newest,
                              const std::set<int64_t>& keep = {});

}  // namespace traind
