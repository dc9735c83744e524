#include "worker/model/learner.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "common/status_macros.h"
#include "worker/device/collective.h"
#include "worker/device/cuda_api.h"
#include "worker/device/guard.h"
#include "worker/model/autocast.h"
#include "worker/model/learner_options.h"
#include "worker/model/loss_scaler.h"
#include "worker/model/model.h"
#include "worker/model/objective_loss.h"
#include "worker/model/optimizer.h"
#include "worker/model/resident_rows.h"
#include "worker/model/static_backward.h"
#include "worker/model/static_forward.h"
#include "worker/model/vector_loops.h"

namespace traind {
namespace {

constexpr int64_t kPredictRows = 4096;  // at once: bounds memory, fills the cores

}  // namespace

struct Learner::Impl {
  LearnerOptions options;
  c10::Device device = c10::kCPU;
  Parameters parameters;
  std::unique_ptr<Model> model;
  std::unique_ptr<GradientReducer> reducer;
  std::optional<LossScaler> scaler;
  std::optional<ObjectiveLoss> objective;
  std::optional<ResidentRows> rows;
  std::optional<Optimizer> optimizer;
  at::Tensor order;  // [rows of the epoch] int32

  // Like parameters.flat(); ema is undefined where there is none.
  at::Tensor gradient, best, ema;
  std::vector<at::Tensor> best_views, ema_views;
  bool ema_began = false;

  // In place of autograd where there is one.
  std::optional<ObjectiveGradient> objective_gradient;
  std::unique_ptr<StaticBackward> fast;
  std::unique_ptr<StaticForward> fast_forward;  // in place of the model's, to predict
  at::Tensor part_gradient;                     // of a step's later parts
  bool gradient_began = false;                  // the step's first part is in `gradient`

  at::Tensor loss_sum;  // [] float64
  double host_loss_sum = 0, loss_rows = 0;
  double gather_s = 0;

  absl::Status Initialize(LearnerData data);
  void PlaceData(LearnerData& data);
  void SetPrecision(Precision precision);
  void ChooseBackward();
  StaticSetup Setup();
  absl::Status CheckClasses(absl::Span<const int32_t> index) const;
  at::Tensor LossOf(const StepInput& input, double& weight);
  absl::Status Step(const StepInput& input);
  absl::Status StaticStep(const StepInput& input);
  void Update(double learning_rate);
  void UpdateEma();
  const at::Tensor& Current() const { return ema.defined() ? ema : parameters.flat(); }
  const std::vector<at::Tensor>& ViewsFor(Weights which) const;
  void ScoreFast(Weights which, const ForwardInput& input, float* out) const;
  void Score(Weights which, const Inputs& inputs, float* out) const;
  void ScoreRows(Weights which, const ResidentRows& from, absl::Span<const int32_t> index,
                 float* out) const;
  std::map<std::string, at::Tensor> Slots() const;
};

absl::Status Learner::Impl::Initialize(LearnerData data) {
  if (options.cuda != nullptr) device = c10::Device(c10::kCUDA, 0);
  ASSIGN_OR_RETURN(model, CreateModel(options.model, options.shape, parameters));
  parameters.Allocate(device);
  parameters.Initialize(options.seed);
  optimizer.emplace(options.optimizer, parameters.flat(), options.paths.fused_optimizer);
  objective.emplace(options.objective, options.target_mean, options.target_scale, device);
  gradient = at::zeros_like(parameters.flat());
  best = parameters.flat().clone();
  best_views = parameters.ViewsOf(best);
  if (options.ema_decay > 0) {
    ema = best.clone();
    ema_views = parameters.ViewsOf(ema);
  }
  loss_sum = at::zeros({}, at::TensorOptions(device).dtype(at::kDouble));
  PlaceData(data);
  if (options.paths.static_forward && !device.is_cuda()) {
    fast_forward = CreateStaticForward(Setup());
  }
  SetPrecision(options.precision);
  return absl::OkStatus();
}

void Learner::Impl::PlaceData(LearnerData& data) {
  const int64_t count = data.rows.rows;
  at::Tensor target;
  if (objective->classification()) {
    target = ToDevice(std::move(data.classes), {count}, device).to(at::kLong);
  } else {
    objective->Standardise(data.values);
    target = ToDevice(std::move(data.values), {count, options.shape.outputs}, device);
  }
  rows.emplace(options.shape, options.horizon, options.cuda, std::move(data.rows),
               std::move(target));
}

void Learner::Impl::SetPrecision(Precision precision) {
  options.precision = precision;
  scaler.reset();
  if (precision == Precision::kFp16) scaler.emplace(device);
  if (device.is_cuda()) {
    at::globalContext().setFloat32MatmulPrecision(precision == Precision::kTf32 ? "high"
                                                                                : "highest");
  }
  ChooseBackward();
}

absl::Status Learner::Impl::CheckClasses(absl::Span<const int32_t> index) const {
  if (!objective->classification() || device.is_cuda()) return absl::OkStatus();
  const int64_t* classes = rows->target().const_data_ptr<int64_t>();
  for (const int32_t row : index) {
    if (classes[row] < 0) {
      return absl::OutOfRangeError(absl::StrCat("row ", row, " has no class to learn"));
    }
  }
  return absl::OkStatus();
}

StaticSetup Learner::Impl::Setup() {
  StaticSetup setup;
  setup.model = options.model;
  setup.shape = options.shape;
  setup.horizon = options.horizon;
  setup.precision = options.precision;
  setup.objective = objective_gradient.has_value() ? &*objective_gradient : nullptr;
  setup.numeric = rows->numeric().const_data_ptr<float>();
  setup.codes = rows->codes().const_data_ptr<int32_t>();
  setup.weights = parameters.flat().const_data_ptr<float>();
  setup.layout = &parameters.layout();
  setup.offsets = parameters.offsets();
  return setup;
}

void Learner::Impl::ChooseBackward() {
  fast.reset();
  if (options.paths.static_backward && !device.is_cuda()) {
    Targets targets;
    if (objective->classification()) {
      targets.classes = rows->target().const_data_ptr<int64_t>();
    } else {
      targets.values = rows->target().const_data_ptr<float>();
    }
    objective_gradient.emplace(options.objective, options.target_mean, options.target_scale,
                               targets, options.shape.outputs);
    fast = CreateStaticBackward(Setup());
  }
  if (fast == nullptr && options.group != nullptr && reducer == nullptr) {
    reducer = std::make_unique<GradientReducer>(*options.group, parameters.tensors());
  }
}

// The loss to differentiate is weight x the returned mean (or sum, of no rows).
at::Tensor Learner::Impl::LossOf(const StepInput& input, double& weight) {
  const auto started = std::chrono::steady_clock::now();
  ResidentRows::Batch batch = rows->Gather(order.narrow(0, input.begin, input.rows));
  batch.inputs.dropout_seed = input.dropout_seed;
  gather_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  const Autocast autocast(device.type(), options.precision);
  const at::Tensor output =
      model->Forward(parameters.tensors(), batch.inputs, /*training=*/true).to(at::kFloat);
  // The reducer divides by the number of ranks.
  const int world_size = options.group == nullptr ? 1 : options.group->world_size();
  if (input.rows == 0) {
    weight = 1;
    return objective->Loss(output, batch.target, at::Reduction::Sum);
  }
  weight = static_cast<double>(input.rows) * world_size / static_cast<double>(input.gang_rows);
  return objective->Loss(output, batch.target, at::Reduction::Mean);
}

absl::Status Learner::Impl::StaticStep(const StepInput& input) {
  const at::NoGradGuard no_gradients;
  if (gradient_began && !part_gradient.defined()) part_gradient = at::zeros_like(gradient);
  const at::Tensor& target = gradient_began ? part_gradient : gradient;
  if (input.rows == 0) {
    target.zero_();
  } else {
    StaticInput pass;
    pass.rows = order.const_data_ptr<int32_t>() + input.begin;
    pass.count = input.rows;
    pass.weight = static_cast<double>(input.rows) / static_cast<double>(input.gang_rows);
    pass.dropout_seed = input.dropout_seed;
    const StaticResult result = fast->Run(pass, target.mutable_data_ptr<float>());
    host_loss_sum += result.loss_sum;
    gather_s += result.gather_s;
    loss_rows += static_cast<double>(input.rows);
  }
  if (gradient_began) gradient.add_(part_gradient);
  gradient_began = !input.last;
  if (!input.last) return absl::OkStatus();
  if (options.group != nullptr) {
    RETURN_IF_ERROR(options.group->Sum(
        absl::MakeSpan(gradient.mutable_data_ptr<float>(), static_cast<size_t>(gradient.numel()))));
  }
  Update(input.learning_rate);
  return absl::OkStatus();
}

absl::Status Learner::Impl::Step(const StepInput& input) {
  if (fast != nullptr) return StaticStep(input);
  if (device.is_cuda() && options.model.dropout > 0) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_current_seed(input.dropout_seed);
  }
  // Where it is told of nothing, it leaves the gradients where autograd adds them up.
  const bool reduce = reducer != nullptr && input.last;
  if (reduce) reducer->BeforeForward();
  double weight = 1;
  const at::Tensor loss = LossOf(input, weight);
  at::Tensor scaled = weight == 1 ? loss : loss.mul(weight);
  if (scaler.has_value()) scaled = scaler->Scale(scaled);
  if (reduce) reducer->BeforeBackward();
  scaled.backward();
  const at::NoGradGuard no_gradients;
  if (input.rows > 0) {
    loss_sum.add_(loss.detach(), static_cast<double>(input.rows));
    loss_rows += static_cast<double>(input.rows);
  }
  if (!input.last) return absl::OkStatus();
  parameters.TakeGradients(gradient);
  if (reducer != nullptr) reducer->Average(gradient);
  Update(input.learning_rate);
  return absl::OkStatus();
}

void Learner::Impl::Update(double learning_rate) {
  std::optional<at::Tensor> found_inf;
  if (scaler.has_value()) found_inf = scaler->Unscale({gradient});
  optimizer->Step(gradient, learning_rate, options.clip_norm, found_inf);
  if (scaler.has_value()) scaler->Update();
  if (ema.defined()) UpdateEma();
}

void Learner::Impl::UpdateEma() {
  const at::Tensor& weights = parameters.flat();
  if (!ema_began) {
    ema.copy_(weights);
    ema_began = true;
  } else if (device.is_cuda()) {
    ema.lerp_(weights, 1 - options.ema_decay);
  } else {
    EmaLoop(options.ema_decay, weights.const_data_ptr<float>(), ema.mutable_data_ptr<float>(),
            ema.numel());
  }
}

const std::vector<at::Tensor>& Learner::Impl::ViewsFor(Weights which) const {
  if (which == Weights::kBest) return best_views;
  return ema.defined() ? ema_views : parameters.tensors();
}

void Learner::Impl::Score(Weights which, const Inputs& inputs, float* out) const {
  const at::NoGradGuard no_gradients;
  const at::Tensor output = model->Forward(ViewsFor(which), inputs, /*training=*/false);
  const at::Tensor answer = objective->Answer(output.to(at::kFloat));
  at::from_blob(out, answer.sizes(), at::TensorOptions().dtype(at::kFloat)).copy_(answer);
}

void Learner::Impl::ScoreFast(Weights which, const ForwardInput& input, float* out) const {
  ForwardInput pass = input;
  const at::Tensor& weights = which == Weights::kBest ? best : Current();
  pass.weights = weights.const_data_ptr<float>();
  fast_forward->Run(pass, out);
  objective->Answer(absl::MakeSpan(out, static_cast<size_t>(pass.count * options.shape.outputs)),
                    options.shape.outputs);
}

void Learner::Impl::ScoreRows(Weights which, const ResidentRows& from,
                              absl::Span<const int32_t> index, float* out) const {
  if (fast_forward != nullptr) {
    ForwardInput input;
    input.numeric = from.numeric().const_data_ptr<float>();
    input.codes = from.codes().const_data_ptr<int32_t>();
    input.rows = index.data();
    input.count = static_cast<int64_t>(index.size());
    return ScoreFast(which, input, out);
  }
  for (size_t begin = 0; begin < index.size(); begin += kPredictRows) {
    const auto part = index.subspan(begin, kPredictRows);
    const at::Tensor on_device = ToDevice(std::vector<int32_t>(part.begin(), part.end()),
                                          {static_cast<int64_t>(part.size())}, device);
    Score(which, from.GatherInputs(on_device),
          out + static_cast<int64_t>(begin) * options.shape.outputs);
  }
}

std::map<std::string, at::Tensor> Learner::Impl::Slots() const {
  std::map<std::string, at::Tensor> slots = optimizer->slots();
  slots[kWeightsSlot] = parameters.flat();
  slots[kBestWeightsSlot] = best;
  if (ema.defined()) slots[kEmaSlot] = ema;
  return slots;
}

Learner::Learner(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Learner::~Learner() = default;

absl::StatusOr<std::unique_ptr<Learner>> Learner::Create(const LearnerOptions& options,
                                                         LearnerData data) {
  RETURN_IF_ERROR(CheckLearnerOptions(options, data));
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  RETURN_IF_ERROR(Guarded([&] { return impl->Initialize(std::move(data)); }));
  return std::unique_ptr<Learner>(new Learner(std::move(impl)));
}

const ParameterLayout& Learner::layout() const { return impl_->parameters.layout(); }
Precision Learner::precision() const { return impl_->options.precision; }

absl::Status Learner::SetPrecision(Precision precision) {
  return Guarded([&] {
    impl_->SetPrecision(precision);
    return absl::OkStatus();
  });
}

absl::Status Learner::SetOrder(absl::Span<const int32_t> rows) {
  RETURN_IF_ERROR(impl_->rows->Check(rows));
  RETURN_IF_ERROR(impl_->CheckClasses(rows));
  return Guarded([&] {
    impl_->order = ToDevice(std::vector<int32_t>(rows.begin(), rows.end()),
                            {static_cast<int64_t>(rows.size())}, impl_->device);
    return absl::OkStatus();
  });
}

absl::Status Learner::Step(const StepInput& input) {
  return Guarded([&] { return impl_->Step(input); });
}

absl::Status Learner::AbandonStep() {
  return Guarded([&] {
    for (const at::Tensor& parameter : impl_->parameters.tensors()) {
      parameter.mutable_grad().reset();
    }
    impl_->gradient_began = false;
    return absl::OkStatus();
  });
}

bool Learner::SetRecompute(bool on) { return impl_->model->SetRecompute(on); }

absl::StatusOr<LossSum> Learner::TakeLoss() {
  LossSum loss;
  RETURN_IF_ERROR(Guarded([&] {
    loss.sum = impl_->loss_sum.item<double>() + std::exchange(impl_->host_loss_sum, 0);
    loss.rows = std::exchange(impl_->loss_rows, 0);
    loss.gather_s = std::exchange(impl_->gather_s, 0);
    loss.gradient_norm = impl_->optimizer->gradient_norm();
    impl_->loss_sum.zero_();
    if (impl_->scaler.has_value()) loss.loss_scale = impl_->scaler->scale();
    return absl::OkStatus();
  }));
  return loss;
}

absl::Status Learner::Synchronize() {
  if (impl_->options.cuda == nullptr) return absl::OkStatus();
  return Guarded([&] {
    impl_->options.cuda->Synchronize();
    return absl::OkStatus();
  });
}

absl::Status Learner::Predict(Weights which, absl::Span<const int32_t> rows,
                              absl::Span<float> out) {
  RETURN_IF_ERROR(impl_->rows->Check(rows));
  return Guarded([&] {
    impl_->ScoreRows(which, *impl_->rows, rows, out.data());
    return absl::OkStatus();
  });
}

absl::Status Learner::Predict(Weights which, const EncodedRows& rows, absl::Span<float> out) {
  const LearnerOptions& options = impl_->options;
  RETURN_IF_ERROR(CheckCodes(options.shape, rows));
  if (impl_->fast_forward != nullptr) {
    return Guarded([&] {
      ForwardInput input;
      input.numeric = rows.numeric.data();
      input.codes = rows.codes.data();
      input.first = impl_->rows->context();
      input.count = std::max<int64_t>(0, rows.rows - input.first);
      impl_->ScoreFast(which, input, out.data());
      return absl::OkStatus();
    });
  }
  if (impl_->rows->context() > 0) {
    return Guarded([&] {
      const ResidentRows passed(options.shape, options.horizon, options.cuda, rows, {});
      std::vector<int32_t> index;
      for (int64_t row = passed.context(); row < rows.rows; ++row) {
        index.push_back(static_cast<int32_t>(row));
      }
      impl_->ScoreRows(which, passed, index, out.data());
      return absl::OkStatus();
    });
  }
  const int64_t outputs = options.shape.outputs, width = options.shape.numeric;
  const int64_t columns = static_cast<int64_t>(options.shape.cardinalities.size());
  return Guarded([&] {
    for (int64_t begin = 0; begin < rows.rows; begin += kPredictRows) {
      const int64_t count = std::min(kPredictRows, rows.rows - begin);
      // Read only: from_blob has no form for that.
      float* numeric = const_cast<float*>(rows.numeric.data()) + begin * width;
      int32_t* codes = const_cast<int32_t*>(rows.codes.data()) + begin * columns;
      const Inputs inputs{at::from_blob(numeric, {count, width}, at::kFloat).to(impl_->device),
                          at::from_blob(codes, {count, columns}, at::kInt).to(impl_->device)};
      impl_->Score(which, inputs, out.data() + begin * outputs);
    }
    return absl::OkStatus();
  });
}

absl::Status Learner::KeepBest() {
  return Guarded([&] {
    const at::NoGradGuard no_gradients;
    impl_->best.copy_(impl_->Current());
    return absl::OkStatus();
  });
}

std::vector<std::string> Learner::SlotNames() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : impl_->Slots()) names.push_back(name);
  return names;
}

absl::StatusOr<Learner::State> Learner::Save() {
  State state;
  RETURN_IF_ERROR(Guarded([&] {
    const at::NoGradGuard no_gradients;
    for (const auto& [name, tensor] : impl_->Slots()) {
      state.slots[name] = impl_->parameters.Pack(tensor);
    }
    state.optimizer_steps = impl_->optimizer->steps();
    if (impl_->scaler.has_value()) {
      state.loss_scale = impl_->scaler->scale();
      state.growth_tracker = impl_->scaler->growth_tracker();
    }
    return absl::OkStatus();
  }));
  return state;
}

absl::Status Learner::Load(const State& state) {
  const auto slots = impl_->Slots();
  const size_t size = static_cast<size_t>(TotalSize(layout()));
  for (const auto& [name, values] : state.slots) {
    if (slots.count(name) == 0 || values.size() != size) {
      return absl::InvalidArgumentError(absl::StrCat("a state with a slot \"", name, "\" of ",
                                                     values.size(), " values is of another model"));
    }
  }
  for (const auto& [name, tensor] : slots) {
    if (state.slots.count(name) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("a state without a slot \"", name, "\" is of another optimizer"));
    }
  }
  return Guarded([&] {
    const at::NoGradGuard no_gradients;
    for (const auto& [name, tensor] : slots) {
      impl_->parameters.Unpack(state.slots.at(name), tensor);
    }
    impl_->optimizer->set_steps(state.optimizer_steps);
    impl_->ema_began = state.optimizer_steps > 0;
    if (impl_->scaler.has_value() && state.loss_scale > 0) {
      impl_->scaler->Restore(state.loss_scale, state.growth_tracker);
    }
    return absl::OkStatus();
  });
}

}  // namespace traind
