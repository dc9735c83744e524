// A model with its data, optimizer and device, as one Rank trains it. Files that include this
// header need no LibTorch.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/metrics/metrics.h"
#include "worker/data/row_encoder.h"
#include "worker/device/precision.h"
#include "worker/learner/optimizer_settings.h"
#include "worker/learner/speed_paths.h"
#include "worker/model/networks/model_spec.h"
#include "worker/model/networks/parameter_layout.h"
#include "worker/model/objective/objective.h"

namespace traind {

class CudaApi;
class Group;
class VolumeSource;

// Receives answers for consecutive voxels, [voxels, outputs]. Each call continues
// where the last one ended.
using AnswerSink = std::function<absl::Status(absl::Span<const float> answers)>;

struct LearnerOptions {
  ModelSpec model;
  ModelShape shape;
  // The sample of row r has the inputs of rows r - horizon - window + 1 .. r - horizon.
  int64_t horizon = 0;
  Objective objective;  // cross-entropy: classification; other losses: regression
  // The score of a volume's mask that Predict() returns in place of its voxels.
  MaskFunction mask_score = DefaultMetricFor("segmentation").kind().of_masks;
  // Regression: [outputs], see RowEncoder. Empty: 0 and 1.
  std::vector<double> target_mean, target_scale;
  OptimizerSettings optimizer;
  // The learning rate of each layer is that of the layer behind it times this; the head's is whole.
  double layer_decay = 1;
  bool decay_norms = true;  // weight decay holds for norms and biases, too
  // Layers of the body may be trained apart from those before them (TrainLayers()).
  bool thaws_by_layer = false;
  // Gradients with a larger L2 norm over all parameters are scaled down to this norm, so that a
  // rare outlier does not upset the optimizer's moments. 0: no clipping.
  double clip_norm = 5;
  // Decay of an exponential moving average of the weights (EMA), which predicts in place of the
  // weights; 0: none. The average starts as the weights after the first step.
  double ema_decay = 0;
  // After n weights the decay is at most (1 + n) / (10 + n).
  bool ema_warmup = false;
  // Weights may be averaged by AverageWeights() (SWA). Not together with an EMA.
  bool averages = false;
  // Mixup's alpha (see MixupShare): the images and numbers of a batch, and the losses, are
  // mixed with those of its other rows; 0: no mixup. Only autograd supports it.
  double mixup = 0;
  // CutMix's alpha: a rectangle of each image is that of another row of its batch; 0: none. With
  // mixup, too, each batch gets one of the two.
  double cutmix = 0;
  // The rows stay in the host's memory, and each batch is copied to the device. Unset: they do
  // where they would take more than half of the GPU's free memory.
  std::optional<bool> rows_on_host;
  Precision precision = Precision::kFp32;
  SpeedPaths paths;
  uint64_t seed = 0;              // of the initial weights
  const CudaApi* cuda = nullptr;  // null: the CPU
  Group* group = nullptr;         // null: a single rank
};

// The rows of the training file, encoded for the network.
struct LearnerData {
  EncodedRows rows;
  std::vector<int32_t> classes;  // [rows], classification; < 0: the row has no class
  // [rows, outputs], regression, in the target's own unit; NaN: the row has no target.
  std::vector<float> values;
};  // rows.media holds the rows' media, with media_begin = 0

struct StepInput {
  int64_t begin = 0;      // index into the order of SetOrder()
  int64_t rows = 0;       // of this rank; may be 0 in a gang
  int64_t gang_rows = 0;  // of all ranks and all micro-batches of this optimizer step
  double learning_rate = 0;
  uint64_t dropout_seed = 0;
  // false: this is a micro-batch that is not the last of its step. Its gradient is accumulated;
  // ranks exchange nothing and the weights stay.
  bool last = true;
  // false: gradients are exchanged only after the backward pass, so that a rank whose memory runs
  // out can take the step again. The same on all ranks.
  bool overlap = true;
};

struct LossSum {
  double sum = 0;     // of the objective, over rows
  double weight = 0;  // the number of rows or, with class weights, the sum of theirs
  // Gradient norm of the last step before clipping; 0 if clipping is off.
  double gradient_norm = 0;
  double loss_scale = 0;  // current scale of fp16; 0: no scaler
  double gather_s = 0;    // time spent on gathering batches
  double mean() const { return weight > 0 ? sum / weight : 0; }
};

enum class Weights { kLast, kBest };

// Names of the slots that every state has.
inline constexpr char kWeightsSlot[] = "weights";
inline constexpr char kBestWeightsSlot[] = "best_weights";  // the weights that predict
inline constexpr char kEmaSlot[] = "ema";  // only if the options ask for an average

// Trains one model on one device and predicts with it. A Rank owns it.
// Threads: confined to one. Errors: as Guarded() maps them.
class Learner {
 public:
  // The same seed gives the same weights on every rank. InvalidArgument if options contradict
  // each other or the data.
  static absl::StatusOr<std::unique_ptr<Learner>> Create(const LearnerOptions& options,
                                                         LearnerData data);
  ~Learner();

  const ParameterLayout& layout() const;
  Precision precision() const;
  // Continues training in another precision; the weights stay.
  absl::Status SetPrecision(Precision precision);

  // Sets the rows of the steps to come, as indices into the data. media_seed seeds the random
  // changes of their media (MediaRequest). OutOfRange if a row has too few rows
  // before it for its window.
  absl::Status SetOrder(absl::Span<const int32_t> rows, uint64_t media_seed = 0);
  // Takes one optimizer step, or one micro-batch of it. The gradient is the mean over the gang's
  // rows; with class weights, the weighted mean.
  absl::Status Step(const StepInput& input);
  // Discards the micro-batches of an unfinished step, after one of them failed.
  absl::Status AbandonStep();
  // Keeps the body as it is, or no longer does (BodyModel): only the head is trained then. The body
  // answers as in predictions, without dropout and by its running statistics, once for each row;
  // images are not changed and not mixed. SetOrder() comes after it. In a gang, by all its ranks.
  // InvalidArgument if the network has no body.
  absl::Status Freeze(bool on);
  bool frozen() const;
  // Trains the head and the last `count` layers of the body, or all of them; those before stay, run
  // as in predictions, and have no part in the gradient's norm. 0: the same as Freeze(true);
  // layers(): as Freeze(false). InvalidArgument if the network has no body, or for other counts
  // unless the options have `thaws_by_layer`. SetOrder() comes after it. In a gang, by all its
  // ranks.
  absl::Status TrainLayers(int64_t count);
  int64_t trained_layers() const;
  int64_t layers() const;  // of the body; 0: there is none
  // Switches activation checkpointing on or off. Returns false if the model does not support
  // it.
  bool SetRecompute(bool on);
  // Number of time steps of a sample that the model sees: the last ones of the shape's window.
  // All of them, unless ShortenWindow() was called. InvalidArgument if the model needs the
  // whole window, or `steps` is not in 2..window().
  int64_t window() const;
  absl::Status ShortenWindow(int64_t steps);
  // Returns the loss of this rank's rows since the last call, and resets it. Waits for the
  // device.
  absl::StatusOr<LossSum> ConsumeLoss();
  // Waits for the device.
  absl::Status Synchronize();
  // How many threads load media while the model trains; 0: the samples have none.
  int loader_threads() const;
  // Adds threads up to that number; results do not depend on it. REQUIRES: loader_threads() > 0.
  void AddLoaderThreadsUpTo(int count);

  // The precision in which predictions are computed from now on: float32, until it is called. Half
  // precision rounds what goes into products; an answer is float32 in any case.
  void AnswerIn(Precision precision);
  Precision answers_in() const;
  // out: [rows, outputs] float32, probabilities or values in the target's own unit. With an EMA,
  // kLast and kBest are averages. For volumes, out holds the score of each row's answer against
  // its own mask, by sliding windows.
  absl::Status Predict(Weights which, absl::Span<const int32_t> rows, absl::Span<float> out);
  // Predicts rows that are not the learner's. The first window - 1 + horizon of them are
  // context; out has a row for each of the others.
  absl::Status Predict(Weights which, const EncodedRows& rows, absl::Span<float> out);

  // Predicts volumes that are not the learner's, one after the other: for each voxel the
  // probability of being foreground or, with several classes, of the background and of each
  // class. Holds no more of a volume than the depth of a patch. between: called after each batch of
  // patches, whose error ends the prediction; null: nothing is.
  absl::Status PredictVolumes(Weights which, const VolumeSource& source, const AnswerSink& sink,
                              const std::function<absl::Status()>& between = nullptr);

  // Whether Predict takes a pass written by hand (handwritten_forward.h).
  bool PredictsByHand() const;
  // Rows that Predict takes at a time: RowsAtOnce(), or fewer after memory ran out.
  int64_t rows_at_once() const;
  // Whether the rows stay in the host's memory (LearnerOptions).
  bool rows_on_host() const;
  // The number of steps of one size that are slower than the steps after them: the first one, or
  // those up to the one that is recorded.
  int64_t steps_before_pace() const;
  // Steps that ran as one launch of a recorded graph (train.paths.cuda_graph).
  int64_t graph_launches() const;
  // Whether gradients travel to the other ranks while the backward pass runs, for steps with
  // StepInput::overlap.
  bool ExchangesInBackward() const;

  // In a gang, by all its ranks: what is no parameter (running statistics) becomes rank
  // 0's, as in PyTorch's DistributedDataParallel.
  absl::Status ShareBuffers();
  // Takes the current weights into the mean of all that were taken so, which predicts from now on
  // (running statistics are averaged, too). InvalidArgument unless the options have `averages`.
  absl::Status AverageWeights();
  // Makes the current weights (with an EMA or a mean: the average) the best ones.
  absl::Status KeepBest();

  // The part of a checkpoint that the learner supplies. Each slot has TotalSize(layout())
  // values in the layout's order. Slots are "weights", "best_weights", "ema", and the
  // optimizer's, by PyTorch's names.
  struct State {
    std::map<std::string, std::vector<float>> slots;
    int64_t optimizer_steps = 0;  // without skipped steps
    int64_t body_steps = 0;       // of these, with a body that was not frozen
    // Of these, with each layer of the body. Empty unless the options have `thaws_by_layer`.
    std::vector<int64_t> layer_steps;
    int64_t averaged =
        0;  // weights that the average has: of AverageWeights(), or of the EMA's steps
    double loss_scale = 0;  // 0: no scaler
    int64_t growth_tracker = 0;
  };
  // The names of Save()'s slots.
  std::vector<std::string> SlotNames() const;
  absl::StatusOr<State> Save();
  // InvalidArgument if a slot is missing, has another size or does not belong to this learner.
  absl::Status Load(const State& state);

 private:
  struct Impl;
  explicit Learner(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Sets how many threads this process's operators may use.
void SetTorchThreads(int threads);

// Trains a tiny model to load kernels, allocators and the autograd engine, and a GPU's context
// unless cuda is null.
absl::Status WarmUpTorch(const CudaApi* cuda);

}  // namespace traind
