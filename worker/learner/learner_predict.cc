// A Learner's predictions.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <numeric>

#include "common/base/status_macros.h"
#include "worker/device/autocast.h"
#include "worker/device/guard.h"
#include "worker/learner/learner_impl.h"
#include "worker/learner/learner_options.h"
#include "worker/learner/media_inputs.h"
#include "worker/learner/rows_at_once.h"

namespace traind {

int64_t RowsAtOnce(const ModelSpec& model, const ModelShape& shape, bool gpu) {
  constexpr int64_t kMostRows = 4096, kLeastSteps = 64;
  constexpr int64_t kScores = 1 << 25;  // of attention, over all heads: 128 MiB
  // The activations of a pixel, voxel or token take about the same memory.
  constexpr int64_t kMediaPlaces = 1 << 17;
  int64_t places = shape.max_tokens;
  for (size_t i = 1; i < shape.image.size(); ++i)
    places = std::max<int64_t>(places, 1) * shape.image[i];
  if (places > 0) {
    double largest = 1;  // of the sizes at which an image is seen
    if (model.cnn.has_value()) {
      for (const double scale : model.cnn->view_scales) largest = std::max(largest, scale);
    }
    places = static_cast<int64_t>(static_cast<double>(places) * largest * largest);
    int64_t most = (gpu ? 16 : 1) * kMediaPlaces / places;
    if (model.text.has_value()) {
      most = std::min(most, (gpu ? 4 : 1) * kScores / (model.text->heads * places * places));
    }
    return std::clamp<int64_t>(most, 1, kMostRows);
  }
  const int64_t pairs = shape.window * std::max(shape.window, kLeastSteps);
  const int64_t most = (gpu ? 16 : 1) * (int64_t{1} << 20) / pairs;
  return std::clamp<int64_t>(most, 1, kMostRows);
}

const std::vector<at::Tensor>& Learner::Impl::ViewsFor(Weights which) const {
  if (which == Weights::kBest) return best_views;
  return PredictsByAverage() ? ema_views : parameters.tensors();
}

void Learner::Impl::Score(Weights which, const Inputs& inputs, float* out) const {
  const at::NoGradGuard no_gradients;
  const Autocast autocast(device.type(), answers_in);
  Answer(model->Forward(ViewsFor(which), inputs, /*training=*/false), out);
}

void Learner::Impl::Answer(const at::Tensor& output, float* out) const {
  at::Tensor answer = objective->Answer(output.to(at::kFloat));
  if (const int64_t members = model->members(); members > 1) {
    answer = answer.view({members, answer.size(0) / members, answer.size(1)}).mean(0);
  }
  at::from_blob(out, answer.sizes(), at::TensorOptions().dtype(at::kFloat)).copy_(answer);
}

void Learner::Impl::ScoreHandwritten(Weights which, const ForwardInput& input, float* out) const {
  ForwardInput pass = input;
  const at::Tensor& weights = which == Weights::kBest ? best : Current();
  pass.weights = weights.const_data_ptr<float>();
  pass.half = answers_in == Precision::kBf16;
  handwritten_forward->Run(pass, out);
  objective->Answer(absl::MakeSpan(out, static_cast<size_t>(pass.count * options.shape.outputs)),
                    options.shape.outputs);
}

absl::Status Learner::Impl::ScoreInBlocks(int64_t rows, const ScoreBlock& score) {
  for (int64_t begin = 0; begin < rows;) {
    const int64_t count = std::min(rows_at_once, rows - begin);
    const absl::Status scored = Guarded([&] { return score(begin, count); });
    if (scored.ok()) {
      begin += count;
      continue;
    }
    if (FaultOf(scored) != Fault::kOutOfMemory || count == 1) return scored;
    rows_at_once = (count + 1) / 2;
    if (options.cuda != nullptr) options.cuda->EmptyCache();
  }
  return absl::OkStatus();
}

// Loads the media of rows that are to be predicted, a block ahead. Null: they have none.
std::unique_ptr<MediaLoader> Learner::Impl::LoadAhead(
    const std::shared_ptr<const MediaSource>& source, std::vector<int32_t> order) const {
  if (source == nullptr) return nullptr;
  const bool several = static_cast<int64_t>(order.size()) > rows_at_once;
  const int threads = !several ? 0 : media_loader == nullptr ? 1 : media_loader->threads();
  auto ahead = std::make_unique<MediaLoader>(source, threads, /*training=*/false, Stage());
  ahead->SetOrder(std::move(order), /*seed=*/0);
  return ahead;
}

absl::Status Learner::Impl::AttachNext(MediaLoader* ahead, int64_t begin, int64_t count,
                                       Inputs& inputs) const {
  if (ahead == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(const MediaBatch* const loaded, ahead->GetBatch(begin, count));
  AttachMedia(TensorsOf(*loaded, HasTexts(options.shape), options.cuda), inputs);
  return absl::OkStatus();
}

absl::Status Learner::Impl::ScoreRows(Weights which, const ResidentRows& from,
                                      absl::Span<const int32_t> index, float* out) {
  if (media != nullptr && media->volumes_source() != nullptr) {
    return ScoreVolumes(which, *media->volumes_source(), index, out);
  }
  if (handwritten_forward != nullptr) {
    ForwardInput input;
    input.numeric = from.numeric().const_data_ptr<float>();
    input.codes = from.codes().const_data_ptr<int32_t>();
    input.rows = index.data();
    input.count = static_cast<int64_t>(index.size());
    ScoreHandwritten(which, input, out);
    return absl::OkStatus();
  }
  if (frozen && &from == &*rows) return ScoreFeatures(which, index, out);
  const std::unique_ptr<MediaLoader> ahead = LoadAhead(media, {index.begin(), index.end()});
  const auto score = [&](int64_t begin, int64_t count) -> absl::Status {
    const auto part = index.subspan(static_cast<size_t>(begin), static_cast<size_t>(count));
    Inputs inputs = ColumnsOf(from, part);
    RETURN_IF_ERROR(AttachNext(ahead.get(), begin, count, inputs));
    Score(which, inputs, out + begin * options.shape.outputs);
    return absl::OkStatus();
  };
  return ScoreInBlocks(static_cast<int64_t>(index.size()), score);
}

absl::Status Learner::Predict(Weights which, absl::Span<const int32_t> rows,
                              absl::Span<float> out) {
  RETURN_IF_ERROR(impl_->rows->Check(rows));
  return Guarded([&] { return impl_->ScoreRows(which, *impl_->rows, rows, out.data()); });
}

absl::Status Learner::Predict(Weights which, const EncodedRows& rows, absl::Span<float> out) {
  const LearnerOptions& options = impl_->options;
  RETURN_IF_ERROR(CheckCodes(options.shape, rows));
  if (impl_->handwritten_forward != nullptr) {
    return Guarded([&] {
      ForwardInput input;
      input.numeric = rows.numeric.data();
      input.codes = rows.codes.data();
      input.first = impl_->rows->context();
      input.count = std::max<int64_t>(0, rows.rows - input.first);
      impl_->ScoreHandwritten(which, input, out.data());
      return absl::OkStatus();
    });
  }
  if (impl_->rows->context() > 0) {
    return Guarded([&] {
      ResidentRows passed(options.shape, options.horizon, options.cuda, /*on_host=*/false, rows,
                          {});
      passed.SetWindow(impl_->window);
      std::vector<int32_t> index;
      for (int64_t row = passed.context(); row < rows.rows; ++row) {
        index.push_back(static_cast<int32_t>(row));
      }
      return impl_->ScoreRows(which, passed, index, out.data());
    });
  }
  const int64_t outputs = options.shape.outputs, width = options.shape.numeric;
  const int64_t columns = static_cast<int64_t>(options.shape.cardinalities.size());
  if (rows.media == nullptr && HasMedia(options.shape)) {
    return absl::InvalidArgumentError("learner: the rows lack the media that the model needs");
  }
  return Guarded([&]() -> absl::Status {
    std::vector<int32_t> index(static_cast<size_t>(rows.rows));
    std::iota(index.begin(), index.end(), static_cast<int32_t>(rows.media_begin));
    const std::unique_ptr<MediaLoader> ahead = impl_->LoadAhead(rows.media, std::move(index));
    const auto score = [&](int64_t begin, int64_t count) -> absl::Status {
      // The tensors are only read, but from_blob has no overload for const data.
      float* numeric = const_cast<float*>(rows.numeric.data()) + begin * width;
      int32_t* codes = const_cast<int32_t*>(rows.codes.data()) + begin * columns;
      Inputs inputs;
      inputs.numeric = at::from_blob(numeric, {count, width}, at::kFloat).to(impl_->device);
      inputs.codes = at::from_blob(codes, {count, columns}, at::kInt).to(impl_->device);
      RETURN_IF_ERROR(impl_->AttachNext(ahead.get(), begin, count, inputs));
      impl_->Score(which, inputs, out.data() + begin * outputs);
      return absl::OkStatus();
    };
    return impl_->ScoreInBlocks(rows.rows, score);
  });
}

}  // namespace traind
