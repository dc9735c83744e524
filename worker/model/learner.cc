#include "worker/model/learner.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "common/status_macros.h"
#include "worker/device/collective.h"
#include "worker/device/cuda_api.h"
#include "worker/device/guard.h"
#include "worker/model/adamw.h"
#include "worker/model/loss_scaler.h"
#include "worker/model/model.h"

namespace traind {
namespace {

constexpr int64_t kPredictRows = 4096;  // at once: bounds memory, fills the cores

class Autocast {
 public:
  Autocast(c10::DeviceType device, Precision precision) : device_(device) {
    enabled_ = precision == Precision::kBf16 || precision == Precision::kFp16;
    if (!enabled_) return;
    at::autocast::set_autocast_dtype(device_,
                                     precision == Precision::kBf16 ? at::kBFloat16 : at::kHalf);
    at::autocast::set_autocast_enabled(device_, true);
  }
  ~Autocast() {
    if (!enabled_) return;
    at::autocast::set_autocast_enabled(device_, false);
    at::autocast::clear_cache();  // casts of weights that the step is about to change
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  c10::DeviceType device_;
  bool enabled_;
};

// On the CPU the tensor takes the values over, without a copy.
template <class T>
at::Tensor ToDevice(std::vector<T> values, at::IntArrayRef shape, c10::Device device) {
  auto owner = std::make_unique<std::vector<T>>(std::move(values));
  T* data = owner->data();
  const at::Tensor host = at::from_blob(
      data, shape, [held = owner.release()](void*) { delete held; },
      at::TensorOptions().dtype(c10::CppTypeToScalarType<T>::value));
  return device.is_cuda() ? host.to(device) : host;
}

}  // namespace

struct Learner::Impl {
  LearnerOptions options;
  c10::Device device = c10::kCPU;
  Parameters parameters;
  std::unique_ptr<Model> model;
  std::unique_ptr<GradientReducer> reducer;
  std::optional<LossScaler> scaler;

  // Data, resident.
  at::Tensor numeric;  // [N, F] float32
  at::Tensor codes;    // [N, K] int32
  at::Tensor target;   // [N] int64 classes, or float32 standardised values
  at::Tensor order;    // [rows of the epoch] int32
  at::Tensor batch_numeric, batch_codes, batch_target;  // as large as the largest batch

  std::optional<AdamW> optimizer;
  std::vector<at::Tensor> gradients;

  at::Tensor best;      // like parameters.flat()
  at::Tensor loss_sum;  // [] float64
  double loss_rows = 0;
  double gather_s = 0;

  absl::Status Initialize(LearnerData data);
  void PlaceData(LearnerData& data);
  void SetPrecision(Precision precision);
  Inputs Gather(const at::Tensor& index, at::Tensor& batch_target_out);
  at::Tensor Loss(const at::Tensor& output, const at::Tensor& wanted, int64_t reduction) const;
  at::Tensor LossOf(const StepInput& input, double& weight);
  void Step(const StepInput& input);
  void Update(double learning_rate);
  void Score(const Inputs& inputs, float* out) const;
  template <class Body>
  void With(Weights which, Body&& body);
};

absl::Status Learner::Impl::Initialize(LearnerData data) {
  if (options.cuda != nullptr) device = c10::Device(c10::kCUDA, 0);
  ASSIGN_OR_RETURN(model, CreateModel(options.model, options.shape, parameters));
  parameters.Allocate(device);
  parameters.Initialize(options.seed);
  optimizer.emplace(parameters, options.weight_decay);
  const at::TensorOptions on_device = at::TensorOptions(device);
  gradients.resize(parameters.tensors().size());
  best = parameters.flat().clone();
  loss_sum = at::zeros({}, on_device.dtype(at::kDouble));
  PlaceData(data);
  SetPrecision(options.precision);
  if (options.group != nullptr) {
    reducer = std::make_unique<GradientReducer>(*options.group, parameters.tensors());
  }
  return absl::OkStatus();
}

void Learner::Impl::PlaceData(LearnerData& data) {
  const int64_t rows = data.rows.rows;
  numeric = ToDevice(std::move(data.rows.numeric), {rows, options.shape.numeric}, device);
  const int64_t columns = static_cast<int64_t>(options.shape.cardinalities.size());
  codes = ToDevice(std::move(data.rows.codes), {rows, columns}, device);
  if (options.classification) {
    target = ToDevice(std::move(data.classes), {rows}, device).to(at::kLong);
    return;
  }
  std::vector<float> standardised(data.values.size());
  for (size_t i = 0; i < data.values.size(); ++i) {
    standardised[i] =
        static_cast<float>((data.values[i] - options.target_mean) / options.target_scale);
  }
  target = ToDevice(std::move(standardised), {rows}, device);
}

void Learner::Impl::SetPrecision(Precision precision) {
  options.precision = precision;
  scaler.reset();
  if (precision == Precision::kFp16) scaler.emplace(device);
  if (device.is_cuda()) {
    at::globalContext().setFloat32MatmulPrecision(precision == Precision::kTf32 ? "high"
                                                                                : "highest");
  }
}

Inputs Learner::Impl::Gather(const at::Tensor& index, at::Tensor& wanted) {
  const at::NoGradGuard no_gradients;
  const int64_t rows = index.size(0);
  if (!batch_numeric.defined() || batch_numeric.size(0) < rows) {
    batch_numeric = at::empty({rows, numeric.size(1)}, numeric.options());
    batch_codes = at::empty({rows, codes.size(1)}, codes.options());
    batch_target = at::empty({rows}, target.options());
  }
  Inputs inputs{batch_numeric.narrow(0, 0, rows), batch_codes.narrow(0, 0, rows)};
  wanted = batch_target.narrow(0, 0, rows);
  if (options.cuda != nullptr) {
    options.cuda->GatherBatch(numeric, codes, target, index, inputs.numeric, inputs.codes, wanted);
    return inputs;
  }
  at::index_select_out(inputs.numeric, numeric, 0, index);
  if (codes.size(1) > 0) at::index_select_out(inputs.codes, codes, 0, index);
  at::index_select_out(wanted, target, 0, index);
  return inputs;
}

at::Tensor Learner::Impl::Loss(const at::Tensor& output, const at::Tensor& wanted,
                               int64_t reduction) const {
  if (options.classification) return at::cross_entropy_loss(output, wanted, {}, reduction);
  return at::mse_loss(output.squeeze(1), wanted, reduction);
}

// The loss to differentiate is weight x the returned mean (or sum, of no rows).
at::Tensor Learner::Impl::LossOf(const StepInput& input, double& weight) {
  at::Tensor wanted;
  const auto started = std::chrono::steady_clock::now();
  Inputs inputs = Gather(order.narrow(0, input.begin, input.rows), wanted);
  inputs.dropout_seed = input.dropout_seed;
  gather_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  const Autocast autocast(device.type(), options.precision);
  const at::Tensor output = model->Forward(inputs, /*training=*/true).to(at::kFloat);
  // The reducer divides by the number of ranks.
  const int world_size = options.group == nullptr ? 1 : options.group->world_size();
  if (input.rows == 0) {
    weight = 1;
    return Loss(output, wanted, at::Reduction::Sum);
  }
  weight = static_cast<double>(input.rows) * world_size / static_cast<double>(input.gang_rows);
  return Loss(output, wanted, at::Reduction::Mean);
}

void Learner::Impl::Step(const StepInput& input) {
  if (device.is_cuda() && options.model.dropout > 0) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_current_seed(input.dropout_seed);
  }
  if (reducer != nullptr) reducer->BeforeForward();
  double weight = 1;
  const at::Tensor loss = LossOf(input, weight);
  at::Tensor scaled = weight == 1 ? loss : loss.mul(weight);
  if (scaler.has_value()) scaled = scaler->Scale(scaled);
  if (reducer != nullptr) reducer->BeforeBackward();
  scaled.backward();
  const at::NoGradGuard no_gradients;
  if (input.rows > 0) {
    loss_sum.add_(loss.detach(), static_cast<double>(input.rows));
    loss_rows += static_cast<double>(input.rows);
  }
  Update(input.learning_rate);
}

void Learner::Impl::Update(double learning_rate) {
  const std::vector<at::Tensor>& tensors = parameters.tensors();
  for (size_t i = 0; i < tensors.size(); ++i) gradients[i] = tensors[i].grad();
  std::optional<at::Tensor> found_inf;
  if (scaler.has_value()) found_inf = scaler->Unscale(gradients);
  optimizer->Step(gradients, learning_rate, found_inf);
  if (scaler.has_value()) scaler->Update();
  // Not zeroed: autograd then hands over its own tensors instead of adding.
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].mutable_grad().reset();
    gradients[i].reset();
  }
}

void Learner::Impl::Score(const Inputs& inputs, float* out) const {
  at::Tensor output = model->Forward(inputs, /*training=*/false).to(at::kFloat);
  if (options.classification) {
    output = at::softmax(output, 1);
  } else {
    output = output.mul(options.target_scale).add_(options.target_mean);
  }
  at::from_blob(out, output.sizes(), at::TensorOptions().dtype(at::kFloat)).copy_(output);
}

// The best weights stand in for the last while body runs; copies are exact.
template <class Body>
void Learner::Impl::With(Weights which, Body&& body) {
  const at::NoGradGuard no_gradients;
  if (which == Weights::kLast) return body();
  const at::Tensor last = parameters.flat().clone();
  parameters.flat().copy_(best);
  try {
    body();
  } catch (...) {
    parameters.flat().copy_(last);
    throw;
  }
  parameters.flat().copy_(last);
}

Learner::Learner(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Learner::~Learner() = default;

absl::StatusOr<std::unique_ptr<Learner>> Learner::Create(const LearnerOptions& options,
                                                         LearnerData data) {
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
  return Guarded([&] {
    impl_->order = ToDevice(std::vector<int32_t>(rows.begin(), rows.end()),
                            {static_cast<int64_t>(rows.size())}, impl_->device);
    return absl::OkStatus();
  });
}

absl::Status Learner::Step(const StepInput& input) {
  return Guarded([&] {
    impl_->Step(input);
    return absl::OkStatus();
  });
}

absl::StatusOr<LossSum> Learner::TakeLoss() {
  LossSum loss;
  RETURN_IF_ERROR(Guarded([&] {
    loss.sum = impl_->loss_sum.item<double>();
    loss.rows = std::exchange(impl_->loss_rows, 0);
    loss.gather_s = std::exchange(impl_->gather_s, 0);
    impl_->loss_sum.zero_();
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
  const int64_t outputs = impl_->options.shape.outputs;
  return Guarded([&] {
    impl_->With(which, [&] {
      for (size_t begin = 0; begin < rows.size(); begin += kPredictRows) {
        const auto part = rows.subspan(begin, kPredictRows);
        const at::Tensor index = ToDevice(std::vector<int32_t>(part.begin(), part.end()),
                                          {static_cast<int64_t>(part.size())}, impl_->device);
        const Inputs inputs{at::index_select(impl_->numeric, 0, index),
                            at::index_select(impl_->codes, 0, index)};
        impl_->Score(inputs, out.data() + static_cast<int64_t>(begin) * outputs);
      }
    });
    return absl::OkStatus();
  });
}

absl::Status Learner::Predict(Weights which, const EncodedRows& rows, absl::Span<float> out) {
  const int64_t outputs = impl_->options.shape.outputs;
  const int64_t columns = impl_->codes.size(1);
  return Guarded([&] {
    impl_->With(which, [&] {
      for (int64_t begin = 0; begin < rows.rows; begin += kPredictRows) {
        const int64_t count = std::min(kPredictRows, rows.rows - begin);
        // Read only: from_blob has no form for that.
        float* numeric =
            const_cast<float*>(rows.numeric.data()) + begin * impl_->options.shape.numeric;
        int32_t* codes = const_cast<int32_t*>(rows.codes.data()) + begin * columns;
        const Inputs inputs{
            at::from_blob(numeric, {count, impl_->options.shape.numeric}, at::kFloat)
                .to(impl_->device),
            at::from_blob(codes, {count, columns}, at::kInt).to(impl_->device)};
        impl_->Score(inputs, out.data() + begin * outputs);
      }
    });
    return absl::OkStatus();
  });
}

absl::Status Learner::KeepBest() {
  return Guarded([&] {
    const at::NoGradGuard no_gradients;
    impl_->best.copy_(impl_->parameters.flat());
    return absl::OkStatus();
  });
}

absl::StatusOr<Learner::State> Learner::Save() {
  State state;
  RETURN_IF_ERROR(Guarded([&] {
    const at::NoGradGuard no_gradients;
    const Parameters& parameters = impl_->parameters;
    state.weights = parameters.Pack(parameters.flat());
    state.best_weights = parameters.Pack(impl_->best);
    state.exp_avg = parameters.Pack(impl_->optimizer->exp_avg());
    state.exp_avg_sq = parameters.Pack(impl_->optimizer->exp_avg_sq());
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
  return Guarded([&] {
    const at::NoGradGuard no_gradients;
    const Parameters& parameters = impl_->parameters;
    parameters.Unpack(state.weights, parameters.flat());
    parameters.Unpack(state.best_weights, impl_->best);
    parameters.Unpack(state.exp_avg, impl_->optimizer->exp_avg());
    parameters.Unpack(state.exp_avg_sq, impl_->optimizer->exp_avg_sq());
    impl_->optimizer->set_steps(state.optimizer_steps);
    if (impl_->scaler.has_value() && state.loss_scale > 0) {
      impl_->scaler->Restore(state.loss_scale, state.growth_tracker);
    }
    return absl::OkStatus();
  });
}

}  // namespace traind
