#include "worker/model/handwritten/handwritten_text_layer.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "worker/model/kernels/dropout_mask.h"
#include "worker/model/kernels/encoder_loops.h"
#include "worker/model/kernels/gelu_loops.h"
#include "worker/model/kernels/layer_loops.h"

namespace traind {
namespace {

std::string NameOf(int64_t index, const char* part) {
  return absl::StrCat("encoder.layers.", index, ".", part);
}

// Makes room for `size` values of any content.
template <class V>
V* Grow(std::vector<V>& values, int64_t size) {
  if (static_cast<int64_t>(values.size()) < size) {
    std::vector<V>().swap(values);  // frees the old memory before allocating
    values.resize(static_cast<size_t>(size));
  }
  return values.data();
}

// A product's result as float32: the values themselves, or a widened copy in `scratch`.
const float* Widened(const float* values, std::vector<float>&, int64_t) { return values; }
const float* Widened(const Bf16* values, std::vector<float>& scratch, int64_t size) {
  CopyTo(values, Grow(scratch, size), size);
  return scratch.data();
}

// The dropouts of a layer, in the order in which CreateTextEncoder's network uses its seeds.
enum Site : int64_t { kProbabilities, kMixed, kHidden, kOut, kSites };

}  // namespace

template <class T>
HandwrittenTextLayer<T>::Linear::Linear(const HandwrittenSetup& setup,
                                        const std::string& weight_name,
                                        const std::string& bias_name, int64_t outputs,
                                        int64_t inputs)
    : out(outputs),
      in(inputs),
      weight(setup.Offset(weight_name)),
      bias(setup.Offset(bias_name)),
      products(setup.weights + weight, outputs, inputs) {}

template <class T>
HandwrittenTextLayer<T>::HandwrittenTextLayer(const HandwrittenSetup& setup, int64_t index,
                                              TextScratch<T>& scratch)
    : index_(index),
      width_(setup.model.text->width),
      heads_(setup.model.text->heads),
      feedforward_(setup.model.text->feedforward),
      dropout_(setup.model.text->dropout),
      weights_(setup.weights),
      in_proj_(setup, NameOf(index, "self_attn.in_proj_weight"),
               NameOf(index, "self_attn.in_proj_bias"), 3 * width_, width_),
      out_proj_(setup, NameOf(index, "self_attn.out_proj.weight"),
                NameOf(index, "self_attn.out_proj.bias"), width_, width_),
      linear1_(setup, NameOf(index, "linear1.weight"), NameOf(index, "linear1.bias"), feedforward_,
               width_),
      linear2_(setup, NameOf(index, "linear2.weight"), NameOf(index, "linear2.bias"), width_,
               feedforward_),
      norm1_(setup, NameOf(index, "norm1"), width_),
      norm2_(setup, NameOf(index, "norm2"), width_),
      scratch_(scratch) {}

template <class T>
void HandwrittenTextLayer<T>::KeepIn(TextActivations<T>* shared) {
  kept_ = shared != nullptr ? shared : &own_;
  if (shared != nullptr) own_ = TextActivations<T>();
}

template <class T>
const float* HandwrittenTextLayer<T>::Factors(int64_t site, std::vector<float>& factors,
                                              int64_t size) {
  if (dropout_ <= 0) return nullptr;
  Grow(factors, size + DropoutMask::kStep);
  DropoutFactors(dropout_, batch_->dropout_seed + static_cast<uint64_t>(index_ * kSites + site),
                 factors.data(), size);
  return factors.data();
}

template <class T>
void HandwrittenTextLayer<T>::Attend(int64_t rows) {
  const PackedShape& shape = batch_->shape;
  TextActivations<T>& a = *kept_;
  T* const products = Grow(scratch_.wide, rows * 3 * width_);
  Product(rows, 3 * width_, width_, Plain<const T>(a.normed.data(), width_),
          in_proj_.products.transposed(), products);
  float* const all = Grow(a.query_key_value, rows * 3 * width_);
  AddBiasTo(products, weights_ + in_proj_.bias, all, rows, 3 * width_);
  RelativeRows<const float> relative;
  if (shape.buckets != nullptr) {
    const int64_t buckets = shape.buckets->count(), both = 2 * width_;
    float* const made = Grow(a.relative, buckets * both);
    Multiply(buckets, both, width_, {batch_->relative, width_, false},
             {weights_ + in_proj_.weight, width_, true}, made, both);
    AddBias(made, weights_ + in_proj_.bias, buckets, both);
    relative = {{made, both}, {made + width_, both}};
  }
  const int64_t probability_count = shape.probability_count();
  float* const mixed = Grow(scratch_.mixed, rows * width_);
  PackedForward(shape, {all, 3 * width_}, {all + width_, 3 * width_},
                {all + 2 * width_, 3 * width_}, relative,
                Factors(kProbabilities, scratch_.probability_factors, probability_count),
                Grow(a.probabilities, probability_count), {mixed, width_});
  CopyScaled(mixed, nullptr, Grow(a.mixed, rows * width_), rows * width_);
}

template <class T>
const float* HandwrittenTextLayer<T>::Forward(const float* x, const TextBatch& batch) {
  x_ = x;
  batch_ = &batch;
  const int64_t rows = batch.shape.tokens(), size = rows * width_;
  TextActivations<T>& a = *kept_;
  for (Linear* linear : {&in_proj_, &out_proj_, &linear1_, &linear2_}) linear->products.Refresh();
  float* const normed = Grow(scratch_.normed, size);
  norm1_.Forward(x, normed, rows, a.norm1);
  CopyScaled(normed, nullptr, Grow(a.normed, size), size);
  Attend(rows);
  T* const narrow = Grow(scratch_.narrow, size);
  Product(rows, width_, width_, Plain<const T>(a.mixed.data(), width_),
          out_proj_.products.transposed(), narrow);
  float* const middle = Grow(scratch_.middle, size);
  AddResidualTo(narrow, weights_ + out_proj_.bias, Factors(kMixed, scratch_.factors, size), x,
                middle, rows, width_);
  norm2_.Forward(middle, normed, rows, a.norm2);
  CopyScaled(normed, nullptr, Grow(a.normed_middle, size), size);
  const int64_t hidden_size = rows * feedforward_;
  T* const hidden = Grow(a.hidden, hidden_size);
  Product(rows, feedforward_, width_, Plain<const T>(a.normed_middle.data(), width_),
          linear1_.products.transposed(), hidden);
  T* const slope = Grow(a.slope, hidden_size);
  BiasGelu(hidden, weights_ + linear1_.bias, slope, rows, feedforward_);
  if (const float* factors = Factors(kHidden, scratch_.factors, hidden_size)) {
    ScaleBy(factors, hidden, hidden_size);
    ScaleBy(factors, slope, hidden_size);
  }
  Product(rows, width_, feedforward_, Plain<const T>(hidden, feedforward_),
          linear2_.products.transposed(), narrow);
  AddResidualTo(narrow, weights_ + linear2_.bias, Factors(kOut, scratch_.factors, size), middle,
                Grow(out_, size), rows, width_);
  return out_.data();
}

template <class T>
void HandwrittenTextLayer<T>::Gradient(const Linear& linear, const T* d, const T* x, int64_t rows,
                                       float* gradient) {
  FloatProduct(linear.out, linear.in, rows, Transposed<const T>(d, linear.out),
               Plain<const T>(x, linear.in), gradient + linear.weight, scratch_.weight_gradient);
}

template <class T>
void HandwrittenTextLayer<T>::AttendBackward(int64_t rows, const float* d_mixed, float* gradient,
                                             float* relative_gradient) {
  const PackedShape& shape = batch_->shape;
  const int64_t stride = 3 * width_, both = 2 * width_;
  const float* const all = kept_->query_key_value.data();
  float* const d_all = Grow(scratch_.d_query_key_value, rows * stride);
  const float* const made = kept_->relative.data();
  const int64_t buckets = shape.buckets != nullptr ? shape.buckets->count() : 0;
  float* const d_made = Grow(scratch_.d_relative, buckets * both);
  PackedBackward(shape, {all, stride}, {all + width_, stride}, {all + both, stride},
                 {{made, both}, {made + width_, both}},
                 Factors(kProbabilities, scratch_.probability_factors, shape.probability_count()),
                 kept_->probabilities.data(), {d_mixed, width_}, {d_all, stride},
                 {d_all + width_, stride}, {d_all + both, stride},
                 {{d_made, both}, {d_made + width_, both}});
  float* const bias = gradient + in_proj_.bias;
  ColumnSums(d_all, bias, rows, stride);
  T* const d = Grow(scratch_.wide, rows * stride);
  CopyScaled(d_all, nullptr, d, rows * stride);
  Gradient(in_proj_, d, kept_->normed.data(), rows, gradient);
  T* const narrow = Grow(scratch_.narrow, rows * width_);
  Product(rows, width_, stride, Plain<const T>(d, stride), in_proj_.products.plain(), narrow);
  if (buckets == 0) return;
  // Also through the queries and keys of the relative positions.
  float* const sums = Grow(scratch_.sums, both);
  ColumnSums(d_made, sums, buckets, both);
  AddTo(sums, bias, both);
  Multiply(both, width_, buckets, {d_made, both, true}, {batch_->relative, width_, false},
           gradient + in_proj_.weight, width_, /*add=*/true);
  Multiply(buckets, width_, both, {d_made, both, false},
           {weights_ + in_proj_.weight, width_, false}, relative_gradient, width_, /*add=*/true);
}

template <class T>
void HandwrittenTextLayer<T>::Backward(float* d, float* gradient, float* relative_gradient) {
  const int64_t rows = batch_->shape.tokens(), size = rows * width_;
  // First the feedforward half. back is the gradient by the half's output, before its dropout.
  const auto half_begins = [&](Site site, const Linear& linear) {
    float* const back = Grow(scratch_.normed, size);
    CopyScaled(d, Factors(site, scratch_.factors, size), back, size);
    ColumnSums(back, gradient + linear.bias, rows, width_);
    T* const narrow = Grow(scratch_.narrow, size);
    CopyScaled(back, nullptr, narrow, size);
    return narrow;
  };
  const T* back = half_begins(kOut, linear2_);
  Gradient(linear2_, back, kept_->hidden.data(), rows, gradient);
  T* const d_hidden = Grow(scratch_.hidden, rows * feedforward_);
  Product(rows, feedforward_, width_, Plain<const T>(back, width_), linear2_.products.plain(),
          d_hidden);
  GeluBackward(kept_->slope.data(), d_hidden, gradient + linear1_.bias, rows, feedforward_);
  Gradient(linear1_, d_hidden, kept_->normed_middle.data(), rows, gradient);
  T* const narrow = Grow(scratch_.narrow, size);
  Product(rows, width_, feedforward_, Plain<const T>(d_hidden, feedforward_),
          linear1_.products.plain(), narrow);
  float* const d_normed = Grow(scratch_.middle, size);
  norm2_.Backward(Widened(narrow, scratch_.normed, size), d_normed, rows, kept_->norm2, gradient);
  AddTo(d_normed, d, size);
  // Then the attention half.
  back = half_begins(kMixed, out_proj_);
  Gradient(out_proj_, back, kept_->mixed.data(), rows, gradient);
  T* const wide = Grow(scratch_.wide, rows * 3 * width_);
  Product(rows, width_, width_, Plain<const T>(back, width_), out_proj_.products.plain(), wide);
  float* const d_mixed = Grow(scratch_.mixed, size);
  CopyScaled(Widened(wide, scratch_.normed, size), nullptr, d_mixed, size);
  AttendBackward(rows, d_mixed, gradient, relative_gradient);
  norm1_.Backward(Widened(scratch_.narrow.data(), scratch_.normed, size), d_normed, rows,
                  kept_->norm1, gradient);
  AddTo(d_normed, d, size);
}

template class HandwrittenTextLayer<float>;
template class HandwrittenTextLayer<Bf16>;

}  // namespace traind
