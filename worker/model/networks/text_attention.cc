#include "worker/model/networks/text_attention.h"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

#include "worker/device/upload.h"
#include "worker/model/kernels/dropout_mask.h"
#include "worker/model/kernels/layer_loops.h"
#include "worker/model/networks/custom_gradient.h"
#include "worker/model/networks/dropout.h"

namespace traind {
namespace {

PackedShape ShapeOf(const TextAttentionOptions& options, int64_t width) {
  PackedShape shape;
  shape.ends = options.ends;
  shape.width = width;
  shape.heads = options.heads;
  shape.buckets = options.buckets;
  shape.window = options.window;
  return shape;
}

template <class T>
struct Columns {
  Rows<T> query, key, value;
};

// Columns of a dense matrix [N, 3 D], or [N, 2 D] without values.
template <class T>
Columns<T> ColumnsOf(T* data, int64_t width, int64_t stride) {
  return {{data, stride}, {data + width, stride}, {data + 2 * width, stride}};
}

RelativeRows<const float> RelativeOf(const at::Tensor& relative, int64_t width) {
  if (relative.numel() == 0) return {};
  const auto columns = ColumnsOf(relative.const_data_ptr<float>(), width, 2 * width);
  return {columns.query, columns.key};
}

at::Tensor FactorsOf(const TextAttentionOptions& options, int64_t size) {
  if (options.dropout <= 0) return {};
  at::Tensor factors =
      at::empty({size + DropoutMask::kStep}, at::TensorOptions().dtype(at::kFloat));
  DropoutFactors(options.dropout, options.seed, factors.mutable_data_ptr<float>(), size);
  return factors;
}

const float* DataOf(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr;
}

// relative is empty if attention is plain.
// saved: query_key_value, relative, the probabilities.
at::Tensor PackedAttention(const TextAttentionOptions& options, const at::Tensor& query_key_value,
                           const at::Tensor& relative, Tensors& saved) {
  const int64_t width = query_key_value.size(1) / 3;
  const PackedShape shape = ShapeOf(options, width);
  const auto columns = ColumnsOf(query_key_value.const_data_ptr<float>(), width, 3 * width);
  const at::Tensor probabilities =
      at::empty({shape.probability_count()}, query_key_value.options());
  const at::Tensor factors = FactorsOf(options, shape.probability_count());
  at::Tensor mixed = at::empty({query_key_value.size(0), width}, query_key_value.options());
  PackedForward(shape, columns.query, columns.key, columns.value, RelativeOf(relative, width),
                DataOf(factors), probabilities.mutable_data_ptr<float>(),
                {mixed.mutable_data_ptr<float>(), width});
  saved = {query_key_value, relative, probabilities};
  return mixed;
}

// Returns the gradients of query_key_value and relative.
Tensors PackedGradients(const TextAttentionOptions& options, const Tensors& saved,
                        const at::Tensor& gradient) {
  const at::Tensor &query_key_value = saved[0], &relative = saved[1], &probabilities = saved[2];
  const int64_t width = query_key_value.size(1) / 3;
  const PackedShape shape = ShapeOf(options, width);
  const auto columns = ColumnsOf(query_key_value.const_data_ptr<float>(), width, 3 * width);
  const at::Tensor factors = FactorsOf(options, shape.probability_count());
  const at::Tensor d_mixed = gradient.contiguous();
  at::Tensor d = at::empty_like(query_key_value), d_relative;
  const auto d_columns = ColumnsOf(d.mutable_data_ptr<float>(), width, 3 * width);
  RelativeRows<float> relative_rows;
  if (relative.numel() > 0) {
    d_relative = at::empty_like(relative);
    const auto rows = ColumnsOf(d_relative.mutable_data_ptr<float>(), width, 2 * width);
    relative_rows = {rows.query, rows.key};
  }
  PackedBackward(shape, columns.query, columns.key, columns.value, RelativeOf(relative, width),
                 DataOf(factors), probabilities.const_data_ptr<float>(),
                 {d_mixed.const_data_ptr<float>(), width}, d_columns.query, d_columns.key,
                 d_columns.value, relative_rows);
  return {d, d_relative};
}

// [B or 1, 1, T or 1, T] bool, or [T, T]: which steps each one sees; undefined: all. With a window
// a step of the padding would see none, so each sees itself.
at::Tensor SeenBy(const PaddedPlaces& places, int64_t window, c10::Device device) {
  if (window == 0) return places.padding.defined() ? places.padding.logical_not() : at::Tensor();
  const at::Tensor steps = at::arange(places.longest, at::TensorOptions(device).dtype(at::kLong));
  const at::Tensor away = steps.unsqueeze(1).sub(steps).abs();
  at::Tensor seen = away.le(window);
  if (!places.padding.defined()) return seen;
  return seen.logical_and(places.padding.logical_not()).logical_or(away.eq(0));
}

// [B, heads, T, depth] each.
at::Tensor FusedAttention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                          const PaddedPlaces& places, const TextAttentionOptions& options) {
  if (options.dropout > 0) {  // the masks follow from the seed, also when a pass is made again
    at::Generator generator = at::globalContext().defaultGenerator(query.device());
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_current_seed(options.seed);
  }
  const at::Tensor seen = SeenBy(places, options.window, query.device());
  return at::scaled_dot_product_attention(
      query, key, value, seen.defined() ? std::optional<at::Tensor>(seen) : std::nullopt,
      options.dropout);
}

// Attention that depends on the distances of tokens, too (He 2021, DeBERTa).
at::Tensor DisentangledAttention(const at::Tensor& query, const at::Tensor& key,
                                 const at::Tensor& value, const at::Tensor& relative,
                                 const PaddedPlaces& places, const TextAttentionOptions& options) {
  const int64_t width = query.size(1) * query.size(3), depth = query.size(3);
  const auto rows = [&](int64_t column) {  // [heads, depth, buckets]
    return relative.narrow(1, column, width)
        .reshape({relative.size(0), options.heads, depth})
        .permute({1, 2, 0});
  };
  // Products may be bf16; everything that adds up, here and backward, is float32.
  at::Tensor scores = at::matmul(query, key.transpose(2, 3)).to(at::kFloat);
  const at::Tensor buckets = places.buckets.expand({places.samples, options.heads, -1, -1});
  scores = scores.add(at::matmul(query, rows(width)).to(at::kFloat).gather(3, buckets));
  // Row j, column i holds the bucket of i - j.
  const at::Tensor by_key =
      at::matmul(key, rows(0)).to(at::kFloat).gather(3, buckets.transpose(2, 3));
  scores = scores.add(by_key.transpose(2, 3)).mul(1.0 / std::sqrt(static_cast<double>(3 * depth)));
  const at::Tensor seen = SeenBy(places, options.window, query.device());
  if (seen.defined()) {
    scores = scores.masked_fill(seen.logical_not(), -std::numeric_limits<double>::infinity());
  }
  at::Tensor probabilities = at::softmax(scores, -1);
  if (options.dropout > 0) probabilities = Dropout(probabilities, options.dropout, options.seed);
  return at::matmul(probabilities.to(value.scalar_type()), value);
}

}  // namespace

at::Tensor TextAttention(const at::Tensor& query_key_value, const at::Tensor& relative,
                         const TextAttentionOptions& options) {
  if (query_key_value.is_cuda()) return PaddedAttention(query_key_value, relative, options);
  const at::Tensor rows = relative.defined() ? relative.to(at::kFloat).contiguous()
                                             : at::empty({0}, query_key_value.options());
  CustomGradient function;
  function.forward = [options](const Tensors& inputs, Tensors& saved) {
    return PackedAttention(options, inputs[0], inputs[1], saved);
  };
  function.backward = [options](const Tensors& saved, const at::Tensor& gradient,
                                const std::vector<bool>&) {
    return PackedGradients(options, saved, gradient);
  };
  return Apply(std::move(function), {query_key_value.to(at::kFloat).contiguous(), rows});
}

at::Tensor PaddedAttention(const at::Tensor& query_key_value, const at::Tensor& relative,
                           const TextAttentionOptions& options) {
  const std::shared_ptr<const PaddedPlaces> places =
      options.places != nullptr
          ? options.places
          : PadPlaces(options.ends, options.buckets, query_key_value.device());
  const int64_t width = query_key_value.size(1) / 3;
  if (places->samples == 0) return query_key_value.narrow(1, 0, width);  // a Rank without rows
  const at::Tensor padded = query_key_value.index_select(0, places->token);
  const auto heads = [&](int64_t column) {  // [B, heads, T, depth]
    return padded.narrow(1, column, width)
        .reshape({places->samples, places->longest, options.heads, width / options.heads})
        .transpose(1, 2);
  };
  const at::Tensor query = heads(0), key = heads(width), value = heads(2 * width);
  const at::Tensor mixed =
      relative.defined() ? DisentangledAttention(query, key, value, relative, *places, options)
                         : FusedAttention(query, key, value, *places, options);
  return mixed.transpose(1, 2)
      .reshape({places->samples * places->longest, width})
      .index_select(0, places->step);
}

std::shared_ptr<const PaddedPlaces> PadPlaces(const std::vector<int64_t>& ends,
                                              const RelativeBuckets* buckets, c10::Device device) {
  auto places = std::make_shared<PaddedPlaces>();
  places->samples = static_cast<int64_t>(ends.size());
  int64_t begin = 0;
  for (const int64_t end : ends) {
    places->longest = std::max(places->longest, end - std::exchange(begin, end));
  }
  at::Tensor token = at::empty({places->samples * places->longest}, at::kLong);
  at::Tensor padding = at::empty({places->samples, 1, 1, places->longest}, at::kBool);
  at::Tensor step = at::empty({ends.empty() ? 0 : ends.back()}, at::kLong);
  auto* tokens = token.mutable_data_ptr<int64_t>();
  auto* steps = step.mutable_data_ptr<int64_t>();
  bool* is_padding = padding.mutable_data_ptr<bool>();
  begin = 0;
  int64_t place = 0;
  for (const int64_t end : ends) {
    for (int64_t t = 0; t < places->longest; ++t, ++place) {
      const bool valid = begin + t < end;
      tokens[place] = valid ? begin + t : begin;
      is_padding[place] = !valid;
      if (valid) steps[begin + t] = place;
    }
    begin = end;
  }
  places->token = Upload(token, device);
  places->step = Upload(step, device);
  if (place > step.numel()) places->padding = Upload(padding, device);
  if (buckets != nullptr) {
    const int64_t longest = places->longest;
    at::Tensor index = at::empty({longest, longest}, at::kLong);
    auto* out = index.mutable_data_ptr<int64_t>();
    for (int64_t i = 0; i < longest; ++i) {
      const int32_t* row = buckets->Row(i);
      out = std::copy(row, row + longest, out);
    }
    places->buckets = Upload(index, device);
  }
  return places;
}

TextAttentionOptions AttentionOver(const std::vector<int64_t>& ends, int64_t heads,
                                   const RelativeBuckets* buckets, c10::Device device) {
  TextAttentionOptions options;
  options.ends = ends;
  options.heads = heads;
  options.buckets = buckets;
  if (device.is_cuda()) options.places = PadPlaces(ends, buckets, device);
  return options;
}

}  // namespace traind
