// A model with its data, optimizer and device: what one Rank trains. This header
// is the border: what includes it needs no LibTorch.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/metrics/metrics.h"
#include "worker/data/row_encoder.h"
#include "worker/device/precision.h"
#include "worker/learner/optimizer_spec.h"
#include "worker/learner/speed_paths.h"
#include "worker/model/networks/model_spec.h"
#include "worker/model/networks/parameter_layout.h"
#include "worker/model/objective/objective.h"

namespace traind {

class CudaApi;
class Group;
class VolumeSource;

// Takes some voxels' answers, [voxels, outputs], which follow those of the call before.
using TakeAnswers = std::function<absl::Status(absl::Span<const float> answers)>;

struct LearnerOptions {
  ModelSpec model;
  ModelShape shape;
  // The sample of row r has the inputs of rows r - horizon - window + 1 .. r - horizon.
  int64_t horizon = 0;
  Objective objective;  // cross-entropy: classification, else regression
  // Predict answers with this score of each volume, not with the volume's voxels.
  MaskFunction mask_score = DefaultMetricFor("segmentation").kind().of_masks;
  // Regression, [outputs]: see RowEncoder. Empty: 0 and 1.
  std::vector<double> target_mean, target_scale;
  OptimizerSpec optimizer;
  // Gradients longer than this (L2 norm over all parameters) are scaled down to it: a
  // rare outlier must not upset the moments. 0: never.
  double clip_norm = 5;
  // Of an average of the weights, kept beside them and used in their place to predict;
  // 0: none. It starts as the weights after the first step.
  double ema_decay = 0;
  // Images and numbers of a batch are mixed with its other rows' (MixupShare's alpha), and
  // their losses with them; 0: none. Autograd alone trains so.
  double mixup = 0;
  Precision precision = Precision::kFp32;
  SpeedPaths paths;
  uint64_t seed = 0;              // of the initial weights
  const CudaApi* cuda = nullptr;  // null: on the CPU
  Group* group = nullptr;         // null: alone
};

// The training file's rows as the network takes them.
struct LearnerData {
  EncodedRows rows;
  std::vector<int32_t> classes;  // [rows], classification; < 0: never trained on
  // [rows, outputs], regression, in the targets' own units; NaN: never trained on
  std::vector<float> values;
};  // rows.media: what each row has besides, from its row media_begin = 0 on

struct StepInput {
  int64_t begin = 0;      // in the order
  int64_t rows = 0;       // this rank's; may be 0 in a gang
  int64_t gang_rows = 0;  // of all ranks, and of all parts of this optimizer step
  double learning_rate = 0;
  uint64_t dropout_seed = 0;
  // false: a part of a step: its gradient is kept and added to the next ones', nothing
  // is exchanged between ranks and the weights stay.
  bool last = true;
};

struct LossSum {
  double sum = 0;  // over rows, of the objective
  double rows = 0;
  // Of the last step, before it was clipped; 0 where clipping is off.
  double gradient_norm = 0;
  double loss_scale = 0;  // of fp16, now; 0: no scaler
  double gather_s = 0;    // spent on putting batches together
  double mean() const { return rows > 0 ? sum / rows : 0; }
};

enum class Weights { kLast, kBest };

// Slots that every state has.
inline constexpr char kWeightsSlot[] = "weights";
inline constexpr char kBestWeightsSlot[] = "best_weights";  // what predicts
inline constexpr char kEmaSlot[] = "ema";                   // where there is one

// Threads: confined to one. Errors: as Guarded() makes them.
class Learner {
 public:
  // Same seed, same weights, on every rank. InvalidArgument where options contradict
  // each other or the data.
  static absl::StatusOr<std::unique_ptr<Learner>> Create(const LearnerOptions& options,
                                                         LearnerData data);
  ~Learner();

  const ParameterLayout& layout() const;
  Precision precision() const;
  // Training goes on in another precision; the weights stay.
  absl::Status SetPrecision(Precision precision);

  // Which rows the steps to come take, by index into the data. media_seed: of what is
  // drawn for their media (MediaRequest). OutOfRange where one has too few rows before it
  // for its window.
  absl::Status SetOrder(absl::Span<const int32_t> rows, uint64_t media_seed = 0);
  // One optimizer step, or a part of one. The gradient is the mean over the gang's rows.
  absl::Status Step(const StepInput& input);
  // Forgets the parts of a step that have been taken so far: after one that failed.
  absl::Status AbandonStep();
  // Activations are computed again in the backward pass instead of being kept. false:
  // the model cannot do that.
  bool SetRecompute(bool on);
  // Time steps of a sample that the model sees, the last ones of the shape's window: all
  // of them until they are shortened. InvalidArgument where the model needs them all, or
  // steps is not in 2..window().
  int64_t window() const;
  absl::Status ShortenWindow(int64_t steps);
  // Loss of this rank's rows since the last call. Waits for the device.
  absl::StatusOr<LossSum> TakeLoss();
  // Waits for the device.
  absl::Status Synchronize();

  // out: [rows, outputs] float32: probabilities, or values in the targets' own units.
  // Always in float32. With an EMA, kLast and kBest are averages. Of volumes: the score of
  // each row's answer against its own mask, by sliding windows, in the training's precision.
  absl::Status Predict(Weights which, absl::Span<const int32_t> rows, absl::Span<float> out);
  // Rows that are not the learner's. The first window - 1 + horizon of them are context:
  // out has a row for each of the others.
  absl::Status Predict(Weights which, const EncodedRows& rows, absl::Span<float> out);

  // Volumes that are not the learner's: the probability of each voxel to be foreground (of
  // several classes: of background and of each), volume after volume. No more is held than a
  // patch's depth of a volume.
  absl::Status PredictVolumes(Weights which, const VolumeSource& source, const TakeAnswers& take);

  // In a gang, by all its ranks: what is no parameter (running statistics) becomes rank
  // 0's, as in PyTorch's DistributedDataParallel.
  absl::Status ShareBuffers();
  // The weights now (with an EMA: their average) are the best.
  absl::Status KeepBest();

  // What a checkpoint keeps. Each slot has TotalSize(layout()) values in the layout's
  // order: "weights", "best_weights", "ema", and the optimizer's by PyTorch's names.
  struct State {
    std::map<std::string, std::vector<float>> slots;
    int64_t optimizer_steps = 0;  // not counting skipped ones
    double loss_scale = 0;        // 0: no scaler
    int64_t growth_tracker = 0;
  };
  // Of Save()'s slots.
  std::vector<std::string> SlotNames() const;
  absl::StatusOr<State> Save();
  // InvalidArgument where a slot is missing, of another size, or not this learner's.
  absl::Status Load(const State& state);

 private:
  struct Impl;
  explicit Learner(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Threads that operators may use, for this process.
void SetTorchThreads(int threads);

// Loads kernels, allocators and the autograd engine (and a GPU's context, unless
// cuda is null) by training a tiny model.
absl::Status WarmUpTorch(const CudaApi* cuda);

}  // namespace traind
