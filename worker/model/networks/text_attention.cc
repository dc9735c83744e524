#include "worker/model/networks/text_attention.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

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

// The buckets of i - j, [T, T], where T is the length of the longest sample.
at::Tensor BucketsOf(const RelativeBuckets& buckets, int64_t longest, c10::Device device) {
  at::Tensor index = at::empty({longest, longest}, at::kLong);
  auto* out = index.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < longest; ++i) {
    for (int64_t j = 0; j < longest; ++j) *out++ = buckets.BucketOf(i - j);
  }
  return index.to(device);
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
  const auto samples = static_cast<int64_t>(options.ends.size());
  const int64_t width = query_key_value.size(1) / 3, depth = width / options.heads;
  int64_t begin = 0, longest = 1;
  for (const int64_t end : options.ends)
    longest = std::max(longest, end - std::exchange(begin, end));
  // For each padded step the index of its token, the mask of padding, and for each token the
  // index of its padded step.
  at::Tensor place = at::empty({samples, longest}, at::kLong);
  at::Tensor padding = at::empty({samples, 1, 1, longest}, at::kBool);
  at::Tensor back = at::empty({query_key_value.size(0)}, at::kLong);
  begin = 0;
  for (int64_t b = 0; b < samples; ++b) {
    const int64_t end = options.ends[static_cast<size_t>(b)];
    for (int64_t t = 0; t < longest; ++t) {
      const bool valid = begin + t < end;
      place.mutable_data_ptr<int64_t>()[b * longest + t] = valid ? begin + t : begin;
      padding.mutable_data_ptr<bool>()[b * longest + t] = !valid;
      if (valid) back.mutable_data_ptr<int64_t>()[begin + t] = b * longest + t;
    }
    begin = end;
  }
  const c10::Device device = query_key_value.device();
  const at::Tensor padded = query_key_value.index_select(0, place.view({-1}).to(device));
  const auto heads = [&](int64_t column) {  // [B, heads, T, depth]
    return padded.narrow(1, column, width)
        .reshape({samples, longest, options.heads, depth})
        .transpose(1, 2);
  };
  const at::Tensor query = heads(0), key = heads(width), value = heads(2 * width);
  // Products may be bf16; everything that adds up, here and backward, is float32.
  at::Tensor scores = at::matmul(query, key.transpose(2, 3)).to(at::kFloat);
  double scale = 1.0 / std::sqrt(static_cast<double>(depth));
  if (relative.defined()) {
    scale = 1.0 / std::sqrt(static_cast<double>(3 * depth));
    const auto rows = [&](int64_t column) {  // [heads, depth, buckets]
      return relative.narrow(1, column, width)
          .reshape({relative.size(0), options.heads, depth})
          .permute({1, 2, 0});
    };
    const at::Tensor buckets =
        BucketsOf(*options.buckets, longest, device).expand({samples, options.heads, -1, -1});
    scores = scores.add(at::matmul(query, rows(width)).to(at::kFloat).gather(3, buckets));
    // Row j, column i holds the bucket of i - j.
    const at::Tensor by_key =
        at::matmul(key, rows(0)).to(at::kFloat).gather(3, buckets.transpose(2, 3));
    scores = scores.add(by_key.transpose(2, 3));
  }
  constexpr double kHidden = -std::numeric_limits<double>::infinity();
  scores = scores.mul(scale).masked_fill(padding.to(device), kHidden);
  if (options.window > 0) {
    const at::Tensor steps = at::arange(longest, at::TensorOptions(device).dtype(at::kLong));
    const at::Tensor away = steps.unsqueeze(1).sub(steps).abs();
    scores = scores.masked_fill(away.gt(options.window), kHidden);
    // A step of the padding may see nothing.
    scores = scores.masked_fill(scores.eq(kHidden).all(-1, true), 0);
  }
  at::Tensor probabilities = at::softmax(scores, -1);
  if (options.dropout > 0) probabilities = Dropout(probabilities, options.dropout, options.seed);
  const at::Tensor mixed = at::matmul(probabilities.to(value.scalar_type()), value);
  return mixed.transpose(1, 2).reshape({samples * longest, width}).index_select(0, back.to(device));
}

}  // namespace traind
