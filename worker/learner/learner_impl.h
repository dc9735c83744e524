// The implementation of Learner, shared by the files learner*.cc only.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/data/volume/sliding_window.h"
#include "worker/data/media_loader.h"
#include "worker/device/collective.h"
#include "worker/device/cuda_api.h"
#include "worker/learner/body_features.h"
#include "worker/learner/learner.h"
#include "worker/learner/loss_scaler.h"
#include "worker/learner/media_inputs.h"
#include "worker/learner/optimizer.h"
#include "worker/learner/resident_rows.h"
#include "worker/model/handwritten/handwritten_backward.h"
#include "worker/model/handwritten/handwritten_forward.h"
#include "worker/model/networks/model.h"
#include "worker/model/objective/objective_loss.h"

namespace traind {

struct Learner::Impl {
  LearnerOptions options;
  c10::Device device = c10::kCPU;
  Parameters parameters;
  std::unique_ptr<Model> model;
  std::unique_ptr<GradientReducer> reducer;
  std::optional<LossScaler> scaler;
  std::optional<ObjectiveLoss> objective;
  std::optional<ResidentRows> rows;
  std::shared_ptr<const MediaSource> media;  // of the rows; null: there are none
  std::unique_ptr<MediaLoader> media_loader;
  std::optional<Optimizer> optimizer;
  at::Tensor order;                 // [rows of the epoch] int32
  std::vector<int32_t> order_rows;  // the same, on the host
  int64_t fixed_below = 0;          // layers of the body with a smaller depth stay as they are
  bool frozen = false;              // all of the body
  BodyFeatures features;            // of the rows; empty unless frozen
  // With class weights: [rows] and [rows of the epoch], the weight of each row's class. Else empty.
  std::vector<float> row_weights, order_weights;

  at::Tensor gradient;  // like parameters.trained()
  // Like parameters.flat(). ema: the weights' average; undefined if there is none.
  at::Tensor best, ema;
  std::vector<at::Tensor> best_views, ema_views;
  int64_t averaged = 0;  // weights that `ema` has taken: steps of an EMA, else those of its mean
  at::Tensor ema_share;  // GPUs: [] float32, what the next weights count in it

  // Used in place of autograd; null if there is no handwritten pass.
  std::optional<ObjectiveGradient> objective_gradient;
  std::unique_ptr<HandwrittenBackward> handwritten_backward;
  std::unique_ptr<HandwrittenForward> handwritten_forward;  // predicts in place of the model
  at::Tensor part_gradient;                                 // gradient of later micro-batches
  bool gradient_began = false;  // the first micro-batch is in `gradient`
  int64_t window = 1;           // time steps that the model sees
  Precision answers_in = Precision::kFp32;
  bool recompute = false;    // activation checkpointing, if the path in use supports it
  int64_t rows_at_once = 1;  // that are predicted at a time; fewer after memory ran out

  // GPUs: a graph of a whole step, recorded after several steps with the same number of rows.
  std::unique_ptr<DeviceGraph> graph;
  int64_t graph_rows = 0;
  std::map<int64_t, int64_t> steps_of;  // [rows of a step] how many, since the last recording
  bool graph_failed = false;
  int64_t graph_launches = 0;
  // The inputs that change from step to step.
  at::Tensor graph_index, graph_rate;
  MediaTensors graph_media;

  at::Tensor loss_sum;  // [] float64
  double host_loss_sum = 0, loss_weight = 0;
  double step_weight = 0;  // of this rank's rows of the unfinished step
  double gather_s = 0;

  absl::Status Initialize(LearnerData data);
  void PlaceData(LearnerData& data);
  bool RowsStayOnHost(const LearnerData& data) const;
  void SetPrecision(Precision precision);
  void ChooseBackward();
  // Returns whether the path in use supports it.
  bool SetRecompute(bool on);
  HandwrittenSetup Setup();
  absl::Status CheckClasses(absl::Span<const int32_t> index) const;
  // What the media loader does with a batch on its own threads.
  MediaLoader::Stage Stage() const;
  absl::StatusOr<MediaTensors> NextMedia(const StepInput& input);
  ResidentRows::Batch BatchOf(const StepInput& input, const at::Tensor& index,
                              const MediaTensors& of_rows);
  at::Tensor LossOf(const StepInput& input, const ResidentRows::Batch& batch,
                    const at::Tensor& body, double& weight);
  std::vector<OptimizerPart> OptimizerParts() const;
  absl::Status TrainLayers(int64_t count);
  void ResetFeatures();
  Inputs ColumnsOf(const ResidentRows& from, absl::Span<const int32_t> rows) const;
  std::unique_ptr<MediaLoader> LoadAhead(const std::shared_ptr<const MediaSource>& source,
                                         std::vector<int32_t> order) const;
  absl::Status AttachNext(MediaLoader* ahead, int64_t begin, int64_t count, Inputs& inputs) const;
  absl::StatusOr<Inputs> InputsOf(const ResidentRows& from, absl::Span<const int32_t> rows,
                                  MediaBatch& loaded) const;
  absl::StatusOr<at::Tensor> FeaturesOf(absl::Span<const int32_t> rows);
  absl::Status ScoreFeatures(Weights which, absl::Span<const int32_t> rows, float* out);
  absl::Status Step(const StepInput& input);
  absl::Status OperatorStep(const StepInput& input);
  absl::Status AutogradStep(const StepInput& input, const at::Tensor& index,
                            const MediaTensors& of_rows);
  bool MayRecord(const StepInput& input) const;
  absl::StatusOr<bool> GraphStep(const StepInput& input);
  void DropGraph();
  absl::Status HandwrittenStep(const StepInput& input);
  double WeightOf(const StepInput& input) const;
  absl::Status Update(const StepInput& input);
  absl::Status DivideByWeights(const StepInput& input);
  void UpdateEma();
  double EmaDecay() const;
  bool PredictsByAverage() const { return options.ema_decay > 0 || averaged > 0; }
  const at::Tensor& Current() const { return PredictsByAverage() ? ema : parameters.flat(); }
  const std::vector<at::Tensor>& ViewsFor(Weights which) const;
  void ScoreHandwritten(Weights which, const ForwardInput& input, float* out) const;
  void Score(Weights which, const Inputs& inputs, float* out) const;
  void Answer(const at::Tensor& output, float* out) const;
  // Scores `rows` rows, or patches of a volume, block by block. Halves the block that does not fit
  // into memory, and the later blocks with it.
  using ScoreBlock = std::function<absl::Status(int64_t begin, int64_t count)>;
  absl::Status ScoreInBlocks(int64_t rows, const ScoreBlock& score);
  absl::Status ScoreRows(Weights which, const ResidentRows& from, absl::Span<const int32_t> index,
                         float* out);
  absl::Status PredictVolume(Weights which, const VolumeSource& source, int64_t row,
                             const ReceiveSlices& take,
                             const std::function<absl::Status()>& between);
  absl::Status ScoreVolumes(Weights which, const VolumeSource& source,
                            absl::Span<const int32_t> index, float* out);
  std::map<std::string, at::Tensor> Slots() const;
};

}  // namespace traind
