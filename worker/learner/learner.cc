#include "worker/learner/learner.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <absl/strings/str_cat.h>

#include <utility>

#include "common/base/status_macros.h"
#include "worker/device/cuda_api.h"
#include "worker/device/guard.h"
#include "worker/device/process_memory.h"
#include "worker/learner/learner_impl.h"
#include "worker/learner/learner_options.h"
#include "worker/learner/media_inputs.h"
#include "worker/learner/rows_at_once.h"

namespace traind {

absl::Status Learner::Impl::Initialize(LearnerData data) {
  window = options.shape.window;
  if (options.cuda != nullptr) {
    device = c10::Device(c10::kCUDA, 0);
    at::globalContext().setBenchmarkCuDNN(options.paths.cudnn_benchmark);
  }
  rows_at_once = RowsAtOnce(options.model, options.shape, device.is_cuda());
  ASSIGN_OR_RETURN(model, CreateModel(options.model, options.shape, parameters));
  model->UseLoops(options.paths.handwritten_backward);
  parameters.Allocate(device);
  parameters.Initialize(options.seed);
  model->Start(parameters);
  optimizer.emplace(options.optimizer, parameters.trained(), OptimizerParts(),
                    options.paths.fused_optimizer);
  objective.emplace(options.objective, options.target_mean, options.target_scale, device);
  gradient = at::zeros_like(parameters.trained());
  best = parameters.flat().clone();
  best_views = parameters.ViewsOf(best);
  if (options.ema_decay > 0 || options.averages) {
    ema = best.clone();
    ema_views = parameters.ViewsOf(ema);
  }
  if (options.ema_decay > 0 && device.is_cuda()) {
    ema_share = at::zeros({}, at::TensorOptions(device).dtype(at::kFloat));
  }
  loss_sum = at::zeros({}, at::TensorOptions(device).dtype(at::kDouble));
  PlaceData(data);
  if (options.paths.handwritten_forward && !device.is_cuda()) {
    handwritten_forward = CreateHandwrittenForward(Setup());
  }
  SetPrecision(options.precision);
  return absl::OkStatus();
}

void Learner::Impl::PlaceData(LearnerData& data) {
  media = data.rows.media;
  if (media != nullptr) {
    media_loader = std::make_unique<MediaLoader>(media, /*threads=*/1, /*training=*/true, Stage());
  }
  const int64_t count = data.rows.rows;
  const bool on_host = RowsStayOnHost(data);
  const c10::Device place = on_host ? c10::Device(c10::kCPU) : device;
  at::Tensor target;
  if (objective->classification()) {
    const std::vector<float>& weights = options.objective.class_weights;
    for (const int32_t of_row : data.classes) {
      if (!weights.empty()) {
        row_weights.push_back(of_row < 0 ? 0 : weights[static_cast<size_t>(of_row)]);
      }
    }
    target = ToDevice(std::move(data.classes), {count}, place).to(at::kLong);
  } else {
    objective->Standardise(data.values);
    target = ToDevice(std::move(data.values), {count, options.shape.outputs}, place);
  }
  rows.emplace(options.shape, options.horizon, options.cuda, on_host, std::move(data.rows),
               std::move(target));
}

MediaLoader::Stage Learner::Impl::Stage() const {
  if (options.cuda == nullptr) return nullptr;
  return LockMedia;
}

bool Learner::Impl::RowsStayOnHost(const LearnerData& data) const {
  if (options.rows_on_host.has_value()) return *options.rows_on_host;
  if (options.cuda == nullptr) return false;
  const auto bytes = [](const auto& values, size_t each) {
    return static_cast<int64_t>(values.size() * each);
  };
  return StayOnHost(bytes(data.rows.numeric, sizeof(float)) +
                        bytes(data.rows.codes, sizeof(int32_t)) +
                        bytes(data.classes, sizeof(int64_t)) + bytes(data.values, sizeof(float)),
                    options.cuda->FreeMemory());
}

void Learner::Impl::SetPrecision(Precision precision) {
  options.precision = precision;
  scaler.reset();
  if (precision == Precision::kFp16) scaler.emplace(device);
  if (device.is_cuda()) {
    // cuDNN's convolutions and recurrent cells take TF32 unless they are told not to.
    const bool tf32 = precision == Precision::kTf32;
    at::globalContext().setFloat32MatmulPrecision(tf32 ? "high" : "highest");
    at::globalContext().setAllowTF32CuDNN(tf32);
  }
  ChooseBackward();
}

absl::Status Learner::Impl::CheckClasses(absl::Span<const int32_t> index) const {
  if (!objective->classification() || device.is_cuda()) return absl::OkStatus();
  const int64_t* classes = rows->target().const_data_ptr<int64_t>();
  for (const int32_t row : index) {
    if (classes[row] < 0) {
      return absl::OutOfRangeError(absl::StrCat("row ", row, " has no class to train on"));
    }
  }
  return absl::OkStatus();
}

HandwrittenSetup Learner::Impl::Setup() {
  HandwrittenSetup setup;
  setup.model = options.model;
  setup.shape = options.shape;
  setup.shape.window = window;
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
  handwritten_backward.reset();
  DropGraph();
  if (options.paths.handwritten_backward && !device.is_cuda() && !frozen) {
    Targets targets;
    if (objective->classification()) {
      targets.classes = rows->target().const_data_ptr<int64_t>();
    } else {
      targets.values = rows->target().const_data_ptr<float>();
    }
    objective_gradient.emplace(options.objective, options.target_mean, options.target_scale,
                               targets, options.shape.outputs);
    handwritten_backward = CreateHandwrittenBackward(Setup());
  }
  if (handwritten_backward == nullptr && options.group != nullptr && reducer == nullptr) {
    reducer = std::make_unique<GradientReducer>(*options.group, parameters.trained_tensors());
  }
  SetRecompute(recompute);
}

bool Learner::Impl::SetRecompute(bool on) {
  recompute = on;
  const bool model_can = model->SetRecompute(on);
  if (on && !device.is_cuda()) KeepFreedMemory(false);
  return handwritten_backward != nullptr ? handwritten_backward->SetRecompute(on) : model_can;
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

Precision Learner::answers_in() const { return impl_->answers_in; }

void Learner::AnswerIn(Precision precision) { impl_->answers_in = precision; }

absl::Status Learner::SetPrecision(Precision precision) {
  return Guarded([&] {
    impl_->SetPrecision(precision);
    return absl::OkStatus();
  });
}

absl::Status Learner::SetOrder(absl::Span<const int32_t> rows, uint64_t media_seed) {
  RETURN_IF_ERROR(impl_->rows->Check(rows));
  RETURN_IF_ERROR(impl_->CheckClasses(rows));
  if (impl_->media_loader != nullptr && !impl_->frozen) {
    impl_->media_loader->SetOrder({rows.begin(), rows.end()}, media_seed);
  }
  return Guarded([&] {
    impl_->order_weights.clear();
    for (const int32_t row : rows) {
      if (impl_->row_weights.empty()) break;
      impl_->order_weights.push_back(impl_->row_weights[static_cast<size_t>(row)]);
    }
    impl_->order_rows.assign(rows.begin(), rows.end());
    impl_->order = ToDevice(std::vector<int32_t>(rows.begin(), rows.end()),
                            {static_cast<int64_t>(rows.size())}, impl_->rows->place());
    return absl::OkStatus();
  });
}

absl::Status Learner::Step(const StepInput& input) {
  return Guarded([&] { return impl_->Step(input); });
}

absl::Status Learner::AbandonStep() {
  return Guarded([&] {
    for (const at::Tensor& parameter : impl_->parameters.trained_tensors()) {
      parameter.mutable_grad().reset();
    }
    impl_->gradient_began = false;
    impl_->step_weight = 0;
    impl_->ChooseBackward();  // drops the buffers of the failed step
    return absl::OkStatus();
  });
}

int64_t Learner::window() const { return impl_->window; }

absl::Status Learner::ShortenWindow(int64_t steps) {
  const plain::FieldInfo& network = *NetworkOf(impl_->options.model);
  if (steps < 2 || steps > impl_->window || !network.sequence) {
    return absl::InvalidArgumentError(absl::StrCat("learner: windows of ", steps, " steps for a ",
                                                   network.name, " that has ", impl_->window));
  }
  if (steps == impl_->window) return absl::OkStatus();
  return Guarded([&] {
    impl_->window = steps;
    impl_->rows->SetWindow(steps);
    impl_->gradient.zero_();  // a pass does not overwrite the gradients that it does not reach
    impl_->part_gradient.reset();
    impl_->ChooseBackward();
    return absl::OkStatus();
  });
}

int64_t Learner::rows_at_once() const { return impl_->rows_at_once; }

int Learner::loader_threads() const {
  return impl_->media_loader == nullptr ? 0 : impl_->media_loader->threads();
}

void Learner::AddLoaderThreadsUpTo(int count) { impl_->media_loader->AddThreadsUpTo(count); }

bool Learner::rows_on_host() const { return impl_->rows->on_host(); }

int64_t Learner::graph_launches() const { return impl_->graph_launches; }

bool Learner::ExchangesInBackward() const {
  return impl_->reducer != nullptr && impl_->handwritten_backward == nullptr &&
         impl_->options.group->transport() != Transport::kSharedMemory;
}

bool Learner::PredictsByHand() const { return impl_->handwritten_forward != nullptr; }

absl::Status Learner::Freeze(bool on) {
  if (on && impl_->model->body() == nullptr) {
    return absl::InvalidArgumentError("train.freeze: this network has no body apart from its head");
  }
  return TrainLayers(on ? 0 : layers());
}

absl::Status Learner::TrainLayers(int64_t count) {
  return Guarded([&] { return impl_->TrainLayers(count); });
}

int64_t Learner::trained_layers() const { return layers() - impl_->fixed_below; }

int64_t Learner::layers() const { return impl_->parameters.layers(); }

bool Learner::frozen() const { return impl_->frozen; }

bool Learner::SetRecompute(bool on) { return impl_->SetRecompute(on); }

absl::StatusOr<LossSum> Learner::ConsumeLoss() {
  LossSum loss;
  RETURN_IF_ERROR(Guarded([&] {
    loss.sum = impl_->loss_sum.item<double>() + std::exchange(impl_->host_loss_sum, 0);
    loss.weight = std::exchange(impl_->loss_weight, 0);
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

absl::Status Learner::ShareBuffers() {
  if (impl_->options.group == nullptr || impl_->parameters.buffers().numel() == 0) {
    return absl::OkStatus();
  }
  return Guarded([&]() -> absl::Status {
    const at::NoGradGuard no_gradients;
    for (const at::Tensor& flat : {impl_->parameters.flat(), impl_->ema}) {
      if (!flat.defined()) continue;
      const at::Tensor buffers = impl_->parameters.BuffersOf(flat);
      const at::Tensor host = buffers.cpu().contiguous();
      RETURN_IF_ERROR(impl_->options.group->Broadcast(
          absl::MakeSpan(host.mutable_data_ptr<float>(), static_cast<size_t>(host.numel()))));
      buffers.copy_(host);
    }
    return absl::OkStatus();
  });
}

absl::Status Learner::AverageWeights() {
  if (!impl_->options.averages) return absl::InvalidArgumentError("learner: weights have no mean");
  return Guarded([&] {
    const at::NoGradGuard no_gradients;
    const double share = 1.0 / static_cast<double>(++impl_->averaged);
    impl_->ema.lerp_(impl_->parameters.flat(), share);
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
    state.body_steps = impl_->optimizer->body_steps();
    if (impl_->options.thaws_by_layer) state.layer_steps = impl_->optimizer->layer_steps();
    state.averaged = impl_->averaged;
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
      return absl::InvalidArgumentError(absl::StrCat("slot \"", name, "\" of the state has ",
                                                     values.size(),
                                                     " values; it belongs to another model"));
    }
  }
  for (const auto& [name, tensor] : slots) {
    if (state.slots.count(name) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("the state has no slot \"", name, "\"; it belongs to another optimizer"));
    }
  }
  return Guarded([&] {
    const at::NoGradGuard no_gradients;
    for (const auto& [name, tensor] : slots) {
      impl_->parameters.Unpack(state.slots.at(name), tensor);
    }
    impl_->optimizer->set_steps(state.optimizer_steps, state.body_steps, state.layer_steps);
    if (impl_->frozen) impl_->ResetFeatures();
    impl_->averaged = state.averaged;
    // Older states do not tell how many steps an EMA has.
    if (impl_->options.ema_decay > 0 && state.averaged == 0) {
      impl_->averaged = state.optimizer_steps;
    }
    impl_->DropGraph();
    if (impl_->scaler.has_value() && state.loss_scale > 0) {
      impl_->scaler->Restore(state.loss_scale, state.growth_tracker);
    }
    return absl::OkStatus();
  });
}

}  // namespace traind
