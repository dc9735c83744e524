// Checkpoints: checkpoint-<step>.safetensors, then its manifest
// checkpoint-<step>.json, which carries the first one's SHA-256. Without a
// manifest there is no checkpoint. Formats: docs/FORMATS.md.
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

// All that a run needs to go on as if it had never stopped. Random numbers are
// functions of (seed, fold, epoch, step), so no generator's state is in it.
struct Checkpoint {
  // Whose it is; a resume elsewhere is refused.
  std::string job;
  int64_t attempt = 0;  // that wrote it; may differ from the one that resumes
  int fold = 0;
  uint64_t seed = 0;
  std::string table_sha256;
  std::string model = "mlp";        // architecture
  std::string optimizer = "adamw";  // a resume with another one is refused too

  // Where it is. Always between two optimizer steps.
  int64_t step = 0;      // optimizer steps done
  int64_t epoch = 0;     // full epochs done
  int64_t position = 0;  // rows of the epoch's order that are behind, over all ranks
  // Passes over all rows that were made; fewer than `epoch` where epochs were shortened. The
  // manifest calls it "passes".
  double epochs_seen = 0;
  double epoch_fraction = 0;  // epochs done, counting part of the running one
  double epoch_loss_sum = 0;  // rank 0's, since the epoch began
  double epoch_loss_rows = 0;

  // How it trains.
  int world_size = 1;
  int batch = 0;           // per rank, of one forward and backward pass
  int64_t step_rows = 0;   // per optimizer step, over all ranks and passes
  bool recompute = false;  // activations in the backward pass
  int64_t window = 0;      // time steps that samples were shortened to; 0: all
  std::string precision;
  int planned_epochs = 0;
  int64_t warmup_steps = 0;
  double learning_rate = 0;     // the schedule's peak
  int64_t optimizer_steps = 0;  // fewer than step where fp16 skipped some
  double loss_scale = 0;        // fp16 only
  int64_t growth_tracker = 0;

  // Early stopping.
  bool has_best = false;
  double best_metric = 0;
  double best_loss = 0;
  double best_epoch = 0;
  int64_t epochs_without_better = 0;
  double patience_metric = 0;  // the best one's at the last end of an epoch

  // By slot the values of all parameters, in the layout's order: "weights",
  // "best_weights" (what predicts; may lack when written: then the weights do) and what
  // the optimizer keeps. Slot names: lower-case letters, digits and '_'.
  std::map<std::string, absl::Span<const float>> slots;
  std::shared_ptr<const void> owner;  // keeps what the slots point to
};

// All but the slots, as JSON: for a rank that cannot read the file itself.
std::string EncodeFields(const Checkpoint& checkpoint);
absl::StatusOr<Checkpoint> DecodeFields(const std::string& json);

struct SavedCheckpoint {
  std::string manifest;  // relative to the state folder
  std::string sha256;    // of the safetensors file
  int64_t bytes = 0;
};

// Durable when it returns; copies nothing. `dir` is relative to the state folder, and
// exists. Errors: those of WriteFileDurably.
absl::StatusOr<SavedCheckpoint> WriteCheckpoint(const std::string& state_dir,
                                                const std::string& dir,
                                                const ParameterLayout& layout,
                                                const Checkpoint& checkpoint);

// The slots point into the file, which stays mapped while `owner` lives.
// Errors: NotFound; DataLoss: damaged, says how; FailedPrecondition: whole, but of
// another model, optimizer, dtype, table, fold or seed than `expected` has (job and
// attempt may differ), or without one of its slots.
absl::StatusOr<Checkpoint> ReadCheckpoint(const std::string& state_dir, const std::string& manifest,
                                          const ParameterLayout& layout,
                                          const Checkpoint& expected);

struct FoundCheckpoint {
  Checkpoint checkpoint;
  std::string manifest;
};

// The checkpoint named; where it is missing, damaged or another model's, the newest
// sound one before it in the same folder. NotFound: none. Each one passed over adds a
// warning.
absl::StatusOr<FoundCheckpoint> FindCheckpoint(const std::string& state_dir,
                                               const std::string& manifest,
                                               const ParameterLayout& layout,
                                               const Checkpoint& expected,
                                               std::vector<std::string>& warnings);

// Removes all but the newest `newest` and those of the steps `keep` from a folder.
// Manifests go first.
absl::Status PruneCheckpoints(const std::string& state_dir, const std::string& dir, int newest,
                              const std::set<int64_t>& keep = {});

}  // namespace traind
