#include "worker/model/handwritten/handwritten_forward.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <vector>

#include "worker/model/handwritten/handwritten_columns.h"
#include "worker/model/kernels/gemm.h"
#include "worker/model/kernels/layer_loops.h"
#include "worker/model/kernels/packed_half_layer.h"
#include "worker/model/kernels/packed_layer.h"

namespace traind {
namespace {

// Few enough rows that a layer's outputs stay in a core's own cache, and a multiple of the tile
// heights of PackedLayer's kernels.
constexpr int64_t kBlockRows = 132;
// The same for bf16, whose rows take half the space.
constexpr int64_t kHalfBlockRows = 192;
static_assert(kHalfBlockRows >= kBlockRows);
// From this many rows on, packing the weights pays off.
constexpr int64_t kPackRows = 64;

class MlpForward final : public HandwrittenForward {
 public:
  explicit MlpForward(const HandwrittenSetup& setup) : setup_(setup) {
    int64_t widest = 1;
    const size_t layers = setup.model.mlp->hidden.size() + 1;
    for (size_t i = 0; i < layers; ++i) {
      const int64_t weight = Index(absl::StrCat("layers.", i, ".weight"));
      const std::vector<int64_t>& shape = (*setup.layout)[static_cast<size_t>(weight)].shape;
      layers_.push_back({shape[1],
                         shape[0],
                         setup.offsets[static_cast<size_t>(weight)],
                         setup.Offset(absl::StrCat("layers.", i, ".bias")),
                         {},
                         {}});
      widest = std::max({widest, shape[0], shape[1]});
    }
    uses_rows_directly_ = setup.shape.cardinalities.empty() && setup.shape.window == 1;
    for (auto* values : {&front_, &back_}) values->resize(static_cast<size_t>(kBlockRows * widest));
    widest_ = widest;
  }

  void Run(const ForwardInput& input, float* outputs) override {
    setup_.numeric = input.numeric;
    setup_.codes = input.codes;
    setup_.weights = input.weights;
    const HandwrittenColumns columns(setup_);
    if (input.half && PackedHalfLayer::Available()) {
      return RunInHalf(columns, input, outputs);
    }
    const bool packed = input.count >= kPackRows && PackedLayer::Available();
    for (Layer& layer : layers_) {
      if (packed) {
        layer.packed.Pack(setup_.weights + layer.weight, setup_.weights + layer.bias, layer.out,
                          layer.in);
      }
    }
    for (int64_t begin = 0; begin < input.count; begin += kBlockRows) {
      const int64_t rows = std::min(kBlockRows, input.count - begin);
      const float* x = Gather(columns, input, begin, rows);
      float *to = front_.data(), *other = back_.data();
      if (x == to) std::swap(to, other);
      for (size_t i = 0; i < layers_.size(); ++i) {
        const bool head = i + 1 == layers_.size();
        if (head) to = outputs + begin * layers_[i].out;
        Apply(layers_[i], x, rows, head, packed, to);
        x = to;
        std::swap(to, other);
      }
    }
  }

 private:
  struct Layer {
    int64_t in = 0, out = 0, weight = 0, bias = 0;
    PackedLayer packed;
    PackedHalfLayer half;
  };

  void RunInHalf(const HandwrittenColumns& columns, const ForwardInput& input, float* outputs) {
    for (Layer& layer : layers_) {
      layer.half.Pack(setup_.weights + layer.weight, setup_.weights + layer.bias, layer.out,
                      layer.in);
    }
    front_.resize(static_cast<size_t>(kHalfBlockRows * widest_));
    for (auto* values : {&half_front_, &half_back_}) {
      values->resize(static_cast<size_t>(kHalfBlockRows * HalfWidth(widest_)));
    }
    for (int64_t begin = 0; begin < input.count; begin += kHalfBlockRows) {
      const int64_t rows = std::min(kHalfBlockRows, input.count - begin);
      Bf16 *x = half_front_.data(), *to = half_back_.data();
      RoundRows(Gather(columns, input, begin, rows), rows, layers_[0].in, x);
      for (const Layer& layer : layers_) {
        if (&layer == &layers_.back()) {
          layer.half.Apply(x, rows, outputs + begin * layer.out);
        } else {
          layer.half.ApplyRelu(x, rows, to);
          std::swap(x, to);
        }
      }
    }
  }

  int64_t Index(const std::string& name) const {
    int64_t i = 0;
    while ((*setup_.layout)[static_cast<size_t>(i)].name != name) ++i;
    return i;
  }

  const float* Gather(const HandwrittenColumns& columns, const ForwardInput& input, int64_t begin,
                      int64_t rows) {
    const int64_t window = setup_.shape.window;
    if (uses_rows_directly_ && input.rows == nullptr && setup_.horizon == 0) {
      return input.numeric + (input.first + begin) * setup_.shape.numeric;
    }
    float* out = front_.data();
    for (int64_t i = begin; i < begin + rows; ++i) {
      const int64_t row = input.rows != nullptr ? input.rows[i] : input.first + i;
      const int64_t first = row - setup_.horizon - window + 1;
      for (int64_t t = 0; t < window; ++t, out += columns.width()) columns.Gather(first + t, out);
    }
    return front_.data();
  }

  void Apply(const Layer& layer, const float* x, int64_t rows, bool head, bool packed,
             float* to) const {
    // A head with one output would use a sixteenth of a tile.
    if (packed && layer.out > 1) return layer.packed.Apply(x, rows, !head, to);
    const float* weight = setup_.weights + layer.weight;
    const float* bias = setup_.weights + layer.bias;
    if (rows == 1) {
      // The weight's rows times one vector.
      DotForward(weight, x, 0, to, layer.out, layer.in);
    } else if (layer.out == 1) {
      DotForward(x, weight, 0, to, rows, layer.in);
    } else {
      Multiply(rows, layer.out, layer.in, {x, layer.in, false}, {weight, layer.in, true}, to,
               layer.out);
    }
    if (head) {
      AddBias(to, bias, rows, layer.out);
    } else {
      BiasRelu(to, bias, rows, layer.out);
    }
  }

  HandwrittenSetup setup_;
  std::vector<Layer> layers_;
  int64_t widest_ = 1;               // of the inputs and outputs of all layers
  bool uses_rows_directly_ = false;  // the first layer takes a row's numbers unchanged
  std::vector<float> front_, back_;
  std::vector<Bf16> half_front_, half_back_;  // empty until they are needed
};

}  // namespace

std::unique_ptr<HandwrittenForward> CreateHandwrittenForward(const HandwrittenSetup& setup) {
  if (!setup.model.mlp.has_value() || !IsPlain(*setup.model.mlp)) return nullptr;
  return std::make_unique<MlpForward>(setup);
}

}  // namespace traind
