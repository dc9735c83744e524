#include "worker/model/handwritten/handwritten_transformer.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "worker/model/handwritten/handwritten_columns.h"
#include "worker/model/handwritten/handwritten_encoder_layer.h"
#include "worker/model/handwritten/handwritten_products.h"
#include "worker/model/kernels/encoder_loops.h"

namespace traind {
namespace {

constexpr uint64_t kSeedsOfLayer = 4;  // number of dropouts in a layer

class HandwrittenTransformer final : public HandwrittenBackward {
 public:
  explicit HandwrittenTransformer(const HandwrittenSetup& setup)
      : setup_(setup),
        spec_(*setup.model.transformer),
        pre_norm_(spec_.norm == "pre"),
        mean_pooling_(spec_.pooling == "mean"),
        steps_(setup.shape.window),
        columns_(setup),
        input_(setup, "input.weight", "input.bias", spec_.width, columns_.width()),
        position_(setup.OffsetOfLast("position", setup.shape.window)),
        head_(setup, spec_.width) {
    for (int64_t k = 0; k < spec_.layers; ++k) {
      const bool last_step = k + 1 == spec_.layers && !mean_pooling_;
      layers_.push_back(std::make_unique<HandwrittenEncoderLayer>(setup, k, last_step, scratch_));
    }
    if (pre_norm_) norm_.emplace(setup, "encoder.norm", spec_.width);
  }

  bool SetRecompute(bool on) override {
    shared_ = on ? std::make_unique<EncoderActivations>() : nullptr;
    for (const auto& layer : layers_) layer->KeepIn(shared_.get());
    return true;
  }

  HandwrittenResult Run(const HandwrittenInput& input, float* gradient) override {
    Reserve(input.count);
    HandwrittenResult result;
    const auto started = std::chrono::steady_clock::now();
    Gather(input);
    result.gather_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    Project();
    const float* x = x_.data();
    for (size_t k = 0; k < layers_.size(); ++k) {
      x = layers_[k]->Forward(x, count_, input.dropout_seed + kSeedsOfLayer * k);
    }
    result.loss_sum = HeadAndBack(x, input, gradient);
    float *d = d_.data(), *dx = dx_.data();
    for (size_t k = layers_.size(); k-- > 0;) {
      // The last layer's activations are still there.
      if (shared_ != nullptr && k + 1 < layers_.size()) layers_[k]->ForwardAgain();
      layers_[k]->Backward(d, dx, gradient);
      std::swap(d, dx);
    }
    ProjectBackward(d, input, gradient);
    return result;
  }

 private:
  int64_t Kept() const { return mean_pooling_ ? steps_ : 1; }  // steps the head's side has

  void Reserve(int64_t count) {
    if (count == count_) return;
    count_ = count;
    const size_t cells = static_cast<size_t>(count * steps_ * spec_.width);
    inputs_.resize(static_cast<size_t>(count * steps_ * columns_.width()));
    for (auto* values : {&x_, &d_, &dx_}) values->resize(cells);
    if (pre_norm_) normed_.resize(static_cast<size_t>(count * Kept() * spec_.width));
    for (auto* values : {&pooled_, &d_pooled_}) {
      values->resize(static_cast<size_t>(count * spec_.width));
    }
  }

  int64_t FirstRow(const HandwrittenInput& input, int64_t i) const {
    return input.rows[i] - setup_.horizon - steps_ + 1;
  }

  void Gather(const HandwrittenInput& input) {
    float* out = inputs_.data();
    for (int64_t i = 0; i < count_; ++i) {
      for (int64_t t = 0; t < steps_; ++t, out += columns_.width()) {
        columns_.Gather(FirstRow(input, i) + t, out);
      }
    }
  }

  void Project() {
    input_.Forward(inputs_.data(), x_.data(), count_ * steps_);
    // The position's vector plus the bias, for each position.
    offsets_.resize(static_cast<size_t>(steps_ * spec_.width));
    std::copy_n(setup_.weights + position_, offsets_.size(), offsets_.data());
    AddBias(offsets_.data(), input_.bias(), steps_, spec_.width);
    AddBias(x_.data(), offsets_.data(), count_, steps_ * spec_.width);
  }

  // Computes the loss from the output of the last layer, and its gradient into d_. Returns the
  // sum of the rows' losses.
  double HeadAndBack(const float* x, const HandwrittenInput& input, float* gradient) {
    const int64_t kept = Kept(), width = spec_.width, rows = count_ * kept;
    if (pre_norm_) {
      norm_->Forward(x, normed_.data(), rows, norm_kept_);
      x = normed_.data();
    }
    const float share = 1.0f / static_cast<float>(kept);
    if (kept > 1) {
      for (int64_t b = 0; b < count_; ++b) {
        float* pooled = pooled_.data() + b * width;
        ColumnSums(x + b * kept * width, pooled, kept, width);
        for (int64_t j = 0; j < width; ++j) pooled[j] *= share;
      }
      x = pooled_.data();
    }
    std::vector<float>& output = head_.Forward(x, count_);
    const double loss = setup_.objective->Run(input.rows, count_, input.weight, output.data());
    head_.Backward(x, count_, gradient, d_pooled_.data());
    for (int64_t row = 0; row < rows; ++row) {
      const float* from = d_pooled_.data() + row / kept * width;
      float* to = d_.data() + row * width;
      for (int64_t j = 0; j < width; ++j) to[j] = from[j] * share;
    }
    if (pre_norm_) norm_->Backward(d_.data(), d_.data(), rows, norm_kept_, gradient);
    return loss;
  }

  void ProjectBackward(const float* d, const HandwrittenInput& input, float* gradient) {
    const int64_t rows = count_ * steps_;
    ColumnSums(d, gradient + position_, count_, steps_ * spec_.width);
    input_.WeightGradients(inputs_.data(), d, rows, 0, spec_.width, true, gradient);
    ColumnSums(gradient + position_, gradient + input_.bias_offset(), steps_, spec_.width);
    if (!columns_.has_embeddings()) return;
    columns_.ClearGradient(gradient);
    input_.InputGradient(d, inputs_.data(), rows, 0, spec_.width, false);
    const float* by_input = inputs_.data() + columns_.numeric();
    for (int64_t i = 0; i < count_; ++i) {
      for (int64_t t = 0; t < steps_; ++t, by_input += columns_.width()) {
        columns_.AddGradient(FirstRow(input, i) + t, by_input, gradient);
      }
    }
  }

  const HandwrittenSetup setup_;
  const plain::TransformerSpec spec_;
  const bool pre_norm_;
  const bool mean_pooling_;
  const int64_t steps_;
  const HandwrittenColumns columns_;
  const HandwrittenLinear input_;
  const int64_t position_;
  HandwrittenHead head_;
  EncoderScratch scratch_;
  std::unique_ptr<EncoderActivations> shared_;  // of all layers, with activation checkpointing
  std::vector<std::unique_ptr<HandwrittenEncoderLayer>> layers_;
  std::optional<HandwrittenNorm> norm_;  // with pre_norm only
  HandwrittenNorm::Kept norm_kept_;
  int64_t count_ = 0;
  std::vector<float> inputs_;      // [B, T, columns]
  std::vector<float> x_, d_, dx_;  // [B, T, D]
  std::vector<float> normed_, offsets_, pooled_, d_pooled_;
};

}  // namespace

std::unique_ptr<HandwrittenBackward> CreateHandwrittenTransformer(const HandwrittenSetup& setup) {
  if (!setup.model.transformer.has_value() || setup.precision != Precision::kFp32) return nullptr;
  return std::make_unique<HandwrittenTransformer>(setup);
}

}  // namespace traind
