#include "worker/model/handwritten/handwritten_lstm.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "worker/model/handwritten/handwritten_columns.h"
#include "worker/model/handwritten/handwritten_products.h"
#include "worker/model/kernels/lstm_loops.h"

namespace traind {
namespace {

size_t Size(int64_t size) { return static_cast<size_t>(size); }

// T: time steps, B: samples, H: width of a layer. Sizes of matrices are as they are stored.
template <class T>
class HandwrittenLstm final : public HandwrittenBackward {
 public:
  explicit HandwrittenLstm(const HandwrittenSetup& setup)
      : setup_(setup),
        columns_(setup),
        head_(setup, setup.model.lstm->hidden),
        steps_(setup.shape.window),
        hidden_(setup.model.lstm->hidden) {
    int64_t in = columns_.width();
    for (int64_t k = 0; k < setup.model.lstm->layers; ++k) {
      layers_.emplace_back(setup, k, in);
      in = hidden_;
    }
  }

  bool SetRecompute(bool on) override {
    shared_ = on ? std::make_unique<Cells>() : nullptr;
    for (Layer& layer : layers_) layer.own = Cells();
    reserved_ = 0;
    return true;
  }

  HandwrittenResult Run(const HandwrittenInput& input, float* gradient) override {
    Reserve(input.count);
    HandwrittenResult result;
    const auto started = std::chrono::steady_clock::now();
    Gather(input);
    result.gather_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    for (size_t k = 0; k < layers_.size(); ++k) Forward(k, input);
    const int64_t count = input.count;
    const float* last = AsFloat(layers_.back().h.data() + steps_ * count * hidden_);
    result.loss_sum =
        setup_.objective->Run(input.rows, count, input.weight, head_.Forward(last, count).data());
    head_.Backward(last, count, gradient, head_d_.data());
    for (size_t k = layers_.size(); k-- > 0;) {
      // The last layer's activations are still there.
      if (shared_ != nullptr && k + 1 < layers_.size()) Forward(k, input);
      Backward(k, input, gradient);
    }
    return result;
  }

 private:
  // The values of a layer's forward pass that its backward pass needs besides h.
  struct Cells {
    std::vector<T> x;            // [T, B, in] after the dropout before the layer
    std::vector<float> factors;  // [T, B, in] of that dropout
    std::vector<T> products;     // bf16: [T, B, 4H]; float32: stored in gates
    std::vector<float> gates;    // [T, B, 4H]
    std::vector<float> c;        // [T + 1, B, H]; the first step is zeros
    std::vector<float> tanh_c;   // [T, B, H]
    std::vector<T> d;            // bf16: [T, B, 4H]; float32: stored in gates
  };

  struct Layer {
    Layer(const HandwrittenSetup& setup, int64_t k, int64_t width)
        : in(width),
          weight_ih(setup.Offset(absl::StrCat("lstm.weight_ih_l", k))),
          weight_hh(setup.Offset(absl::StrCat("lstm.weight_hh_l", k))),
          bias_ih(setup.Offset(absl::StrCat("lstm.bias_ih_l", k))),
          bias_hh(setup.Offset(absl::StrCat("lstm.bias_hh_l", k))),
          ih(setup.weights + weight_ih, 4 * setup.model.lstm->hidden, width),
          hh(setup.weights + weight_hh, 4 * setup.model.lstm->hidden, setup.model.lstm->hidden),
          bias(Size(4 * setup.model.lstm->hidden)) {}

    int64_t in;
    int64_t weight_ih, weight_hh, bias_ih, bias_hh;  // offsets
    HandwrittenWeight<T> ih, hh;                     // [4H, in], [4H, H]
    std::vector<float> bias;                         // [4H], the sum of both biases
    std::vector<T> h;                                // [T + 1, B, H]; the first step is zeros
    Cells own;
    Cells* cells = nullptr;  // the layer's own, or those that all layers share
  };

  static constexpr bool kNarrow = std::is_same<T, Bf16>::value;
  bool Drops(size_t k) const { return k > 0 && setup_.model.lstm->dropout > 0; }

  void Reserve(int64_t count) {
    if (count == reserved_) return;
    reserved_ = count;
    const int64_t cells = steps_ * count * hidden_;
    inputs_.resize(Size(steps_ * count * columns_.width()));
    for (size_t k = 0; k < layers_.size(); ++k) {
      Layer& layer = layers_[k];
      layer.cells = shared_ != nullptr ? shared_.get() : &layer.own;
      Cells& own = *layer.cells;
      if (Drops(k)) own.x.resize(Size(cells));
      if (Drops(k)) own.factors.resize(Size(cells + 16));
      own.gates.resize(Size(4 * cells));
      if (kNarrow) own.products.resize(Size(4 * cells));
      if (kNarrow) own.d.resize(Size(4 * cells));
      own.c.assign(Size(cells + count * hidden_), 0.0f);
      own.tanh_c.resize(Size(cells));
      layer.h.assign(Size(cells + count * hidden_), T{});
    }
    up_.resize(Size(cells));
    for (auto* values : {&dc_, &last_, &head_d_}) values->resize(Size(count * hidden_));
    dh_.resize(Size(count * hidden_));
    more_.resize(Size(4 * count * hidden_));
  }

  int64_t FirstRow(const HandwrittenInput& input, int64_t i) const {
    return input.rows[i] - setup_.horizon - steps_ + 1;
  }

  void Gather(const HandwrittenInput& input) {
    T* out = inputs_.data();
    for (int64_t t = 0; t < steps_; ++t) {
      for (int64_t i = 0; i < input.count; ++i, out += columns_.width()) {
        columns_.Gather(FirstRow(input, i) + t, out);
      }
    }
  }

  // The input of a layer, [T, B, in].
  const T* InputOf(size_t k, int64_t count) const {
    if (k == 0) return inputs_.data();
    return Drops(k) ? layers_[k].cells->x.data() : layers_[k - 1].h.data() + count * hidden_;
  }

  void Forward(size_t k, const HandwrittenInput& input) {
    Layer& layer = layers_[k];
    const int64_t count = input.count, cells = count * hidden_;
    layer.ih.Refresh();
    layer.hh.Refresh();
    for (size_t j = 0; j < layer.bias.size(); ++j) {
      layer.bias[j] = setup_.weights[layer.bias_ih + static_cast<int64_t>(j)] +
                      setup_.weights[layer.bias_hh + static_cast<int64_t>(j)];
    }
    if (Drops(k)) {
      DropoutFactors(setup_.model.lstm->dropout, input.dropout_seed + k,
                     layer.cells->factors.data(), steps_ * cells);
      Scale(layers_[k - 1].h.data() + cells, layer.cells->factors.data(), layer.cells->x.data(),
            steps_ * cells);
    }
    Product(steps_ * count, 4 * hidden_, layer.in, {InputOf(k, count), layer.in, false},
            layer.ih.transposed(), ProductsOf(layer));
    for (int64_t t = 0; t < steps_; ++t) Step(layer, t, count);
  }

  T* ProductsOf(Layer& layer) { return Either(layer.cells->products, layer.cells->gates); }
  T* DeltasOf(Layer& layer) { return Either(layer.cells->d, layer.cells->gates); }
  static float* Either(std::vector<float>&, std::vector<float>& gates) { return gates.data(); }
  static Bf16* Either(std::vector<Bf16>& own, std::vector<float>&) { return own.data(); }

  void Step(Layer& layer, int64_t t, int64_t count) {
    const int64_t cells = count * hidden_;
    float* gates = layer.cells->gates.data() + 4 * t * cells;
    const Matrix<const T> before{layer.h.data() + t * cells, hidden_, false};
    float* c = layer.cells->c.data() + t * cells;
    float* tanh_c = layer.cells->tanh_c.data() + t * cells;
    T* h = layer.h.data() + (t + 1) * cells;
    if constexpr (kNarrow) {
      if (t > 0) {
        Product(count, 4 * hidden_, hidden_, before, layer.hh.transposed(), more_.data());
      }
      LstmForward(layer.cells->products.data() + 4 * t * cells, t > 0 ? more_.data() : nullptr,
                  layer.bias.data(), c, gates, c + cells, tanh_c, h, count, hidden_);
    } else {
      if (t > 0) {
        Multiply(count, 4 * hidden_, hidden_, before, layer.hh.transposed(), gates, 4 * hidden_,
                 /*add=*/true);
      }
      LstmForward(gates, layer.bias.data(), c, gates, c + cells, tanh_c, h, count, hidden_);
    }
  }

  void Backward(size_t k, const HandwrittenInput& input, float* gradient) {
    Layer& layer = layers_[k];
    const int64_t count = input.count, cells = count * hidden_;
    T* deltas = DeltasOf(layer);
    float* bias_gradient = gradient + layer.bias_ih;
    std::fill_n(bias_gradient, 4 * hidden_, 0.0f);
    std::fill(dc_.begin(), dc_.end(), 0.0f);
    const bool top = k + 1 == layers_.size();
    if (top) FromFloat(head_d_.data(), up_.data() + (steps_ - 1) * cells, cells);
    for (int64_t t = steps_ - 1; t >= 0; --t) {
      const bool last = t == steps_ - 1;
      T* d = deltas + 4 * t * cells;
      LstmBackward(layer.cells->gates.data() + 4 * t * cells, layer.cells->c.data() + t * cells,
                   layer.cells->tanh_c.data() + t * cells, last ? nullptr : dh_.data(),
                   top && !last ? nullptr : up_.data() + t * cells, dc_.data(), d, bias_gradient,
                   count, hidden_);
      if (t > 0) {
        Product(count, hidden_, 4 * hidden_, {d, 4 * hidden_, false}, layer.hh.plain(), dh_.data());
      }
    }
    std::copy_n(bias_gradient, 4 * hidden_, gradient + layer.bias_hh);
    // The first step is left out, because h is zero before it.
    FloatProduct(4 * hidden_, hidden_, (steps_ - 1) * count,
                 {deltas + 4 * cells, 4 * hidden_, true}, {layer.h.data() + cells, hidden_, false},
                 gradient + layer.weight_hh, scratch_);
    FloatProduct(4 * hidden_, layer.in, steps_ * count, {deltas, 4 * hidden_, true},
                 {InputOf(k, count), layer.in, false}, gradient + layer.weight_ih, scratch_);
    if (k == 0) return BackwardEmbeddings(input, deltas, gradient);
    Product(steps_ * count, hidden_, 4 * hidden_, {deltas, 4 * hidden_, false}, layer.ih.plain(),
            up_.data());
    if (Drops(k)) Scale(up_.data(), layer.cells->factors.data(), up_.data(), steps_ * cells);
  }

  // Only these columns of the first layer's input have parameters.
  void BackwardEmbeddings(const HandwrittenInput& input, const T* deltas, float* gradient) {
    if (!columns_.has_embeddings()) return;
    columns_.ClearGradient(gradient);
    const int64_t width = columns_.width() - columns_.numeric();
    input_d_.resize(Size(steps_ * input.count * width));
    Matrix<const T> weight = layers_[0].ih.plain();
    weight.data += columns_.numeric();
    Product(steps_ * input.count, width, 4 * hidden_, {deltas, 4 * hidden_, false}, weight,
            input_d_.data());
    const T* d = input_d_.data();
    for (int64_t t = 0; t < steps_; ++t) {
      for (int64_t i = 0; i < input.count; ++i, d += width) {
        columns_.AddGradient(FirstRow(input, i) + t, d, gradient);
      }
    }
  }

  const float* AsFloat(const float* values) { return values; }
  const float* AsFloat(const Bf16* values) {
    ToFloat(values, last_.data(), static_cast<int64_t>(last_.size()));
    return last_.data();
  }
  static void FromFloat(const float* from, float* to, int64_t size) { std::copy_n(from, size, to); }
  static void FromFloat(const float* from, Bf16* to, int64_t size) { ToBf16(from, to, size); }

  const HandwrittenSetup setup_;
  const HandwrittenColumns columns_;
  HandwrittenHead head_;
  const int64_t steps_, hidden_;
  std::vector<Layer> layers_;
  std::unique_ptr<Cells> shared_;          // of all layers, with activation checkpointing
  std::vector<T> inputs_;                  // [T, B, columns]
  std::vector<T> up_;                      // [T, B, H], gradient from the layer above
  std::vector<float> dc_, last_, head_d_;  // [B, H]
  std::vector<T> dh_;                      // [B, H]
  std::vector<T> more_, scratch_, input_d_;
  int64_t reserved_ = 0;
};

}  // namespace

std::unique_ptr<HandwrittenBackward> CreateHandwrittenLstm(const HandwrittenSetup& setup) {
  if (!setup.model.lstm.has_value()) return nullptr;
  if (setup.precision == Precision::kFp32) return std::make_unique<HandwrittenLstm<float>>(setup);
  if (setup.precision == Precision::kBf16) return std::make_unique<HandwrittenLstm<Bf16>>(setup);
  return nullptr;
}

}  // namespace traind
