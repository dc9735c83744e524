// What a Learner answers.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>

#include "common/status_macros.h"
#include "worker/device/guard.h"
#include "worker/model/learner_impl.h"
#include "worker/model/learner_options.h"

namespace traind {
namespace {

// Rows at once: enough to fill the device, few enough that what a network makes of their
// windows (attention: a number per pair of time steps) takes less than a training step.
int64_t RowsAtOnce(const ModelShape& shape, bool gpu) {
  constexpr int64_t kMostRows = 4096, kLeastSteps = 64;
  const int64_t pairs = shape.window * std::max(shape.window, kLeastSteps);
  const int64_t most = (gpu ? 16 : 1) * (int64_t{1} << 20) / pairs;
  return std::clamp<int64_t>(most, 1, kMostRows);
}

}  // namespace

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
  const auto at_once = static_cast<size_t>(RowsAtOnce(options.shape, device.is_cuda()));
  for (size_t begin = 0; begin < index.size(); begin += at_once) {
    const auto part = index.subspan(begin, at_once);
    const at::Tensor on_device = ToDevice(std::vector<int32_t>(part.begin(), part.end()),
                                          {static_cast<int64_t>(part.size())}, device);
    Score(which, from.GatherInputs(on_device),
          out + static_cast<int64_t>(begin) * options.shape.outputs);
  }
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
    const int64_t at_once = RowsAtOnce(options.shape, impl_->device.is_cuda());
    for (int64_t begin = 0; begin < rows.rows; begin += at_once) {
      const int64_t count = std::min(at_once, rows.rows - begin);
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

}  // namespace traind
