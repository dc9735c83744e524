#include "worker/model/handwritten/handwritten_text.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "worker/data/media_source.h"
#include "worker/model/handwritten/handwritten_columns.h"
#include "worker/model/handwritten/handwritten_encoder_layer.h"
#include "worker/model/handwritten/handwritten_text_layer.h"
#include "worker/model/kernels/encoder_loops.h"
#include "worker/model/kernels/layer_loops.h"
#include "worker/model/networks/text_encoder_sizes.h"

namespace traind {
namespace {

float* Sized(std::vector<float>& values, int64_t size) {
  values.resize(static_cast<size_t>(size));
  return values.data();
}

// The layers after the encoder. They are small, so they stay in float32.
class HandwrittenTextHead {
 public:
  explicit HandwrittenTextHead(const HandwrittenSetup& setup)
      : setup_(setup),
        columns_(setup),
        joined_(setup.model.text->width +
                (columns_.width() > 0 ? TextEncoderSizes::kColumnWidth : 0)),
        head_(setup, "head.0.weight", "head.0.bias", TextEncoderSizes::kHeadWidth, joined_),
        output_(setup, "head.2.weight", "head.2.bias", setup.shape.outputs,
                TextEncoderSizes::kHeadWidth) {
    if (columns_.width() > 0) {
      layer_.emplace(setup, "columns.weight", "columns.bias", TextEncoderSizes::kColumnWidth,
                     columns_.width());
    }
  }

  // pooled: [B, D]; becomes the gradient by it. Returns the sum of the rows' losses.
  double Run(const HandwrittenInput& input, float* pooled, float* gradient) {
    const int64_t count = input.count, text = setup_.model.text->width;
    constexpr int64_t kColumns = TextEncoderSizes::kColumnWidth;
    float* const rows = Sized(rows_, count * columns_.width());
    float* const made = Sized(made_, count * kColumns);
    float* const joined = Sized(wide_, count * joined_);
    if (layer_.has_value()) {
      for (int64_t i = 0; i < count; ++i) {
        columns_.Gather(input.rows[i], rows + i * columns_.width());
      }
      layer_->Forward(rows, made, count);
      BiasRelu(made, layer_->bias(), count, kColumns);
    }
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(pooled + i * text, text, joined + i * joined_);
      std::copy_n(made + i * kColumns, joined_ - text, joined + i * joined_ + text);
    }
    float* const hidden = Sized(hidden_, count * head_.out());
    head_.Forward(joined, hidden, count);
    BiasRelu(hidden, head_.bias(), count, head_.out());
    float* const out = Sized(out_, count * output_.out());
    output_.Forward(hidden, out, count);
    AddBias(out, output_.bias(), count, output_.out());
    const double loss = setup_.objective->Run(input.rows, count, input.weight, out);

    output_.WeightGradients(hidden, out, count, 0, output_.out(), false, gradient);
    float* const d_hidden = Sized(d_hidden_, count * head_.out());
    output_.InputGradient(out, d_hidden, count, 0, output_.out(), false);
    ReluBackward(hidden, 1, d_hidden, gradient + head_.bias_offset(), count, head_.out());
    head_.WeightGradients(joined, d_hidden, count, 0, head_.out(), true, gradient);
    head_.InputGradient(d_hidden, joined, count, 0, head_.out(), false);
    float* const d_made = Sized(d_made_, count * kColumns);
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(joined + i * joined_, text, pooled + i * text);
      std::copy_n(joined + i * joined_ + text, joined_ - text, d_made + i * kColumns);
    }
    if (layer_.has_value()) ColumnsBackward(input, gradient);
    return loss;
  }

 private:
  void ColumnsBackward(const HandwrittenInput& input, float* gradient) {
    const int64_t count = input.count, width = columns_.width();
    constexpr int64_t kColumns = TextEncoderSizes::kColumnWidth;
    ReluBackward(made_.data(), 1, d_made_.data(), gradient + layer_->bias_offset(), count,
                 kColumns);
    layer_->WeightGradients(rows_.data(), d_made_.data(), count, 0, kColumns, true, gradient);
    if (!columns_.has_embeddings()) return;
    columns_.ClearGradient(gradient);
    layer_->InputGradient(d_made_.data(), rows_.data(), count, 0, kColumns, false);
    for (int64_t i = 0; i < count; ++i) {
      columns_.AddGradient(input.rows[i], rows_.data() + i * width + columns_.numeric(), gradient);
    }
  }

  const HandwrittenSetup& setup_;
  const HandwrittenColumns columns_;
  const int64_t joined_;
  std::optional<HandwrittenLinear> layer_;  // over the input columns
  const HandwrittenLinear head_, output_;
  std::vector<float> rows_, made_, d_made_, wide_, hidden_, d_hidden_, out_;
};

template <class T>
class HandwrittenText final : public HandwrittenBackward {
 public:
  explicit HandwrittenText(const HandwrittenSetup& setup)
      : setup_(setup),
        spec_(*setup.model.text),
        disentangled_(spec_.attention == "disentangled"),
        buckets_(TextEncoderSizes::kRelativeSpan, setup.shape.max_tokens),
        tokens_(setup.Offset("tokens.weight")),
        positions_(setup.Offset(disentangled_ ? "relative.weight" : "position")),
        head_(setup_) {
    for (int64_t k = 0; k < spec_.layers; ++k) {
      layers_.push_back(std::make_unique<HandwrittenTextLayer<T>>(setup, k, scratch_));
    }
  }

  bool SetRecompute(bool on) override {
    shared_ = on ? std::make_unique<TextActivations<T>>() : nullptr;
    for (const auto& layer : layers_) layer->KeepIn(shared_.get());
    return true;
  }

  HandwrittenResult Run(const HandwrittenInput& input, float* gradient) override {
    ends_.assign(input.media->ends.begin(), input.media->ends.end());
    TextBatch batch;
    batch.shape.ends = ends_;
    batch.shape.width = spec_.width;
    batch.shape.heads = spec_.heads;
    batch.dropout_seed = input.dropout_seed;
    if (disentangled_) {
      batch.shape.buckets = &buckets_;
      batch.relative = setup_.weights + positions_;
    }
    const float* x = Embed(*input.media);
    for (const auto& layer : layers_) x = layer->Forward(x, batch);
    HandwrittenResult result;
    Pool(x);
    result.loss_sum = head_.Run(input, pooled_.data(), gradient);
    PoolBackward();
    float* const by_position = gradient + positions_;
    const int64_t rows = disentangled_ ? buckets_.count() : setup_.shape.max_tokens;
    std::fill_n(by_position, rows * spec_.width, 0.0f);
    for (size_t k = layers_.size(); k-- > 0;) {
      // The last layer's activations are still there.
      if (shared_ != nullptr && k + 1 < layers_.size()) layers_[k]->ForwardAgain();
      layers_[k]->Backward(d_.data(), gradient, by_position);
    }
    EmbedBackward(*input.media, gradient);
    return result;
  }

 private:
  // Calls use(index of the token, its place in its sample).
  template <class Use>
  void ForEachToken(const Use& use) const {
    int64_t begin = 0;
    for (const int64_t end : ends_) {
      for (int64_t i = begin; i < end; ++i) use(i, i - begin);
      begin = end;
    }
  }

  const float* Embed(const MediaBatch& media) {
    const int64_t width = spec_.width;
    float* const x = Sized(x_, static_cast<int64_t>(media.tokens.size()) * width);
    ForEachToken([&](int64_t i, int64_t place) {
      const int64_t token = media.tokens[static_cast<size_t>(i)];
      std::copy_n(setup_.weights + tokens_ + token * width, width, x + i * width);
      if (disentangled_) return;
      AddTo(setup_.weights + positions_ + place * width, x + i * width, width);
    });
    return x;
  }

  void EmbedBackward(const MediaBatch& media, float* gradient) const {
    const int64_t width = spec_.width;
    float* const by_token = gradient + tokens_;
    std::fill_n(by_token, setup_.shape.vocabulary * width, 0.0f);
    ForEachToken([&](int64_t i, int64_t place) {
      const float* const d = d_.data() + i * width;
      AddTo(d, by_token + media.tokens[static_cast<size_t>(i)] * width, width);
      if (!disentangled_) AddTo(d, gradient + positions_ + place * width, width);
    });
  }

  // Pool takes the mean over each sample; PoolBackward is its backward pass.
  void Pool(const float* x) {
    const int64_t width = spec_.width;
    float* pooled = Sized(pooled_, static_cast<int64_t>(ends_.size()) * width);
    int64_t begin = 0;
    for (const int64_t end : ends_) {
      ColumnSums(x + begin * width, pooled, end - begin, width);
      const float share = 1.0f / static_cast<float>(end - begin);
      for (int64_t j = 0; j < width; ++j) pooled[j] *= share;
      pooled += width;
      begin = end;
    }
  }
  void PoolBackward() {
    const int64_t width = spec_.width;
    float* d = Sized(d_, (ends_.empty() ? 0 : ends_.back()) * width);
    const float* pooled = pooled_.data();
    int64_t begin = 0;
    for (const int64_t end : ends_) {
      const float share = 1.0f / static_cast<float>(end - begin);
      for (int64_t i = begin; i < end; ++i, d += width) {
        for (int64_t j = 0; j < width; ++j) d[j] = pooled[j] * share;
      }
      pooled += width;
      begin = end;
    }
  }

  const HandwrittenSetup setup_;
  const plain::TextEncoderSpec spec_;
  const bool disentangled_;
  const RelativeBuckets buckets_;
  const int64_t tokens_, positions_;  // offsets; positions_: of position or relative.weight
  HandwrittenTextHead head_;
  TextScratch<T> scratch_;
  std::unique_ptr<TextActivations<T>> shared_;  // of all layers, with activation checkpointing
  std::vector<std::unique_ptr<HandwrittenTextLayer<T>>> layers_;
  std::vector<int64_t> ends_;
  std::vector<float> x_, d_, pooled_;
};

}  // namespace

std::unique_ptr<HandwrittenBackward> CreateHandwrittenText(const HandwrittenSetup& setup) {
  if (!setup.model.text.has_value() || !setup.model.text->architecture.empty()) return nullptr;
  if (setup.precision == Precision::kBf16) return std::make_unique<HandwrittenText<Bf16>>(setup);
  return std::make_unique<HandwrittenText<float>>(setup);
}

}  // namespace traind
