#include "worker/model/handwritten/handwritten_mlp.h"

#include <absl/strings/str_cat.h>

#include <chrono>
#include <vector>

#include "worker/model/handwritten/handwritten_columns.h"
#include "worker/model/handwritten/handwritten_products.h"
#include "worker/model/kernels/dropout_mask.h"
#include "worker/model/kernels/layer_loops.h"

namespace traind {
namespace {

template <class T>
class HandwrittenMlp final : public HandwrittenBackward {
 public:
  explicit HandwrittenMlp(const HandwrittenSetup& setup)
      : setup_(setup), columns_(setup), keep_scale_(DropoutMask::Scale(setup.model.mlp->dropout)) {
    int64_t in = columns_.width() * setup.shape.window;
    std::vector<int64_t> widths = setup.model.mlp->hidden;
    widths.push_back(setup.shape.outputs);
    for (size_t i = 0; i < widths.size(); ++i) {
      layers_.emplace_back(setup, i, in, widths[i]);
      in = widths[i];
    }
  }

  HandwrittenResult Run(const HandwrittenInput& input, float* gradient) override {
    Reserve(input.count);
    HandwrittenResult result;
    const auto started = std::chrono::steady_clock::now();
    Gather(input);
    result.gather_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    Forward(input);
    result.loss_sum = setup_.objective->Run(input.rows, input.count, input.weight, output_.data());
    BackwardHead(input.count, gradient);
    for (size_t i = layers_.size() - 1; i-- > 0;) Backward(i, input, gradient);
    return result;
  }

 private:
  struct Layer {
    Layer(const HandwrittenSetup& setup, size_t i, int64_t width, int64_t outputs)
        : in(width),
          out(outputs),
          weight(setup.Offset(absl::StrCat("layers.", i, ".weight"))),
          bias(setup.Offset(absl::StrCat("layers.", i, ".bias"))),
          products(setup.weights + weight, outputs, width) {}

    int64_t in, out;
    int64_t weight, bias;           // offsets
    HandwrittenWeight<T> products;  // [out, in]
    std::vector<T> x;               // [B, in], the layer's input
    std::vector<T> d;               // [B, out], the loss's gradient by x W^T + b; not for the head
  };

  void Reserve(int64_t count) {
    if (count <= reserved_) return;
    reserved_ = count;
    for (Layer& layer : layers_) {
      layer.x.resize(static_cast<size_t>(count * layer.in));
      if (&layer != &layers_.back()) layer.d.resize(static_cast<size_t>(count * layer.out));
    }
    output_.resize(static_cast<size_t>(count * setup_.shape.outputs));
    narrow_output_.resize(output_.size());
  }

  void Gather(const HandwrittenInput& input) {
    T* out = layers_[0].x.data();
    const int64_t window = setup_.shape.window;
    for (int64_t i = 0; i < input.count; ++i) {
      const int64_t first = input.rows[i] - setup_.horizon - window + 1;
      for (int64_t t = 0; t < window; ++t, out += columns_.width()) columns_.Gather(first + t, out);
    }
  }

  void Forward(const HandwrittenInput& input) {
    for (size_t i = 0; i + 1 < layers_.size(); ++i) {
      Layer& layer = layers_[i];
      layer.products.Refresh();
      T* out = layers_[i + 1].x.data();
      Product(input.count, layer.out, layer.in, {layer.x.data(), layer.in, false},
              layer.products.transposed(), out);
      const float* bias = setup_.weights + layer.bias;
      if (setup_.model.mlp->dropout > 0) {
        BiasReluDropout(out, bias, input.count, layer.out, setup_.model.mlp->dropout,
                        input.dropout_seed + i);
      } else {
        BiasRelu(out, bias, input.count, layer.out);
      }
    }
    Layer& head = layers_.back();
    const float* bias = setup_.weights + head.bias;
    if (head.out == 1) {
      DotForward(head.x.data(), setup_.weights + head.weight, *bias, output_.data(), input.count,
                 head.in);
      return;
    }
    head.products.Refresh();
    FloatProduct(input.count, head.out, head.in, {head.x.data(), head.in, false},
                 head.products.transposed(), output_.data(), scratch_);
    AddBias(output_.data(), bias, input.count, head.out);
  }

  const float* NarrowOutput(int64_t, float*) { return output_.data(); }
  const Bf16* NarrowOutput(int64_t size, Bf16*) {
    ToBf16(output_.data(), narrow_output_.data(), size);
    return narrow_output_.data();
  }

  // REQUIRES: output_ holds the loss's gradient by the output. Computes d and the bias gradient
  // of the last hidden layer.
  void BackwardHead(int64_t count, float* gradient) {
    Layer& head = layers_.back();
    Layer& last = layers_[layers_.size() - 2];
    float* sums = gradient + last.bias;
    ColumnSums(output_.data(), gradient + head.bias, count, head.out);
    if (head.out == 1) {
      DotBackward(head.x.data(), setup_.weights + head.weight, output_.data(), keep_scale_,
                  last.d.data(), sums, gradient + head.weight, count, head.in);
      return;
    }
    const T* d = NarrowOutput(count * head.out, static_cast<T*>(nullptr));
    FloatProduct(head.out, head.in, count, {d, head.out, true}, {head.x.data(), head.in, false},
                 gradient + head.weight, scratch_);
    Product(count, head.in, head.out, {d, head.out, false}, head.products.plain(), last.d.data());
    ReluBackward(head.x.data(), keep_scale_, last.d.data(), sums, count, head.in);
  }

  // Computes the weight gradient of a hidden layer from its d, and the d of the layer below.
  void Backward(size_t index, const HandwrittenInput& input, float* gradient) {
    Layer& layer = layers_[index];
    const Matrix<const T> d{layer.d.data(), layer.out, false};
    FloatProduct(layer.out, layer.in, input.count, {layer.d.data(), layer.out, true},
                 {layer.x.data(), layer.in, false}, gradient + layer.weight, scratch_);
    if (index == 0) return BackwardEmbeddings(input, gradient);
    Layer& below = layers_[index - 1];
    Product(input.count, layer.in, layer.out, d, layer.products.plain(), below.d.data());
    ReluBackward(layer.x.data(), keep_scale_, below.d.data(), gradient + below.bias, input.count,
                 layer.in);
  }

  // Only these columns of the first layer's input have parameters.
  void BackwardEmbeddings(const HandwrittenInput& input, float* gradient) {
    if (!columns_.has_embeddings()) return;
    columns_.ClearGradient(gradient);
    Layer& layer = layers_[0];
    const int64_t window = setup_.shape.window, width = columns_.width();
    const int64_t begin = window == 1 ? columns_.numeric() : 0, columns = layer.in - begin;
    input_d_.resize(static_cast<size_t>(input.count * columns));
    Matrix<const T> weight = layer.products.plain();
    weight.data += begin;
    Product(input.count, columns, layer.out, {layer.d.data(), layer.out, false}, weight,
            input_d_.data());
    for (int64_t i = 0; i < input.count; ++i) {
      const int64_t first = input.rows[i] - setup_.horizon - window + 1;
      for (int64_t t = 0; t < window; ++t) {
        columns_.AddGradient(first + t,
                             input_d_.data() + i * columns + t * width + columns_.numeric() - begin,
                             gradient);
      }
    }
  }

  const HandwrittenSetup setup_;
  const HandwrittenColumns columns_;
  const float keep_scale_;  // of the elements that dropout keeps
  std::vector<Layer> layers_;
  std::vector<float> output_;  // [B, outputs], then the loss's gradient by them
  std::vector<T> narrow_output_, input_d_, scratch_;
  int64_t reserved_ = 0;
};

}  // namespace

std::unique_ptr<HandwrittenBackward> CreateHandwrittenMlp(const HandwrittenSetup& setup) {
  if (!setup.model.mlp.has_value() || setup.model.mlp->hidden.empty()) return nullptr;
  if (!IsPlain(*setup.model.mlp)) return nullptr;
  if (setup.precision == Precision::kFp32) return std::make_unique<HandwrittenMlp<float>>(setup);
  if (setup.precision == Precision::kBf16) return std::make_unique<HandwrittenMlp<Bf16>>(setup);
  return nullptr;
}

}  // namespace traind
