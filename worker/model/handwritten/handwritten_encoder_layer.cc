#include "worker/model/handwritten/handwritten_encoder_layer.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "worker/model/kernels/dropout_mask.h"
#include "worker/model/kernels/encoder_loops.h"
#include "worker/model/kernels/layer_loops.h"
#include "worker/model/kernels/lstm_loops.h"

namespace traind {
namespace {

std::string NameOf(int64_t index, const char* part) {
  return absl::StrCat("encoder.layers.", index, ".", part);
}

HandwrittenLinear Linear(const HandwrittenSetup& setup, int64_t index, const char* part,
                         int64_t out, int64_t in) {
  const std::string name = NameOf(index, part);
  return HandwrittenLinear(setup, name + ".weight", name + ".bias", out, in);
}

// Makes room for `size` values of any content. The vector never shrinks, because layers that
// share it need different sizes in turn.
float* Grow(std::vector<float>& values, int64_t size) {
  if (static_cast<int64_t>(values.size()) < size) {
    std::vector<float>().swap(values);  // frees the old memory before allocating
    values.resize(static_cast<size_t>(size));
  }
  return values.data();
}

// The dropouts of a layer, in the order in which CreateTransformer's network uses its seeds.
enum Site : int64_t { kProbabilities, kMixed, kHidden, kOut };

}  // namespace

HandwrittenNorm::HandwrittenNorm(const HandwrittenSetup& setup, const std::string& name,
                                 int64_t width)
    : width_(width),
      weight_(setup.Offset(name + ".weight")),
      bias_(setup.Offset(name + ".bias")),
      weights_(setup.weights) {}

void HandwrittenNorm::Forward(const float* x, float* y, int64_t rows, Kept& kept) const {
  LayerNorm(x, weights_ + weight_, weights_ + bias_, y, Grow(kept.centred, rows * width_),
            Grow(kept.inverse, rows), rows, width_);
}

void HandwrittenNorm::Backward(const float* dy, float* dx, int64_t rows, const Kept& kept,
                               float* gradient) const {
  std::fill_n(gradient + weight_, width_, 0.0f);
  std::fill_n(gradient + bias_, width_, 0.0f);
  LayerNormBackward(dy, kept.centred.data(), kept.inverse.data(), weights_ + weight_, dx,
                    gradient + weight_, gradient + bias_, rows, width_);
}

HandwrittenLinear::HandwrittenLinear(const HandwrittenSetup& setup, const std::string& weight,
                                     const std::string& bias, int64_t out, int64_t in)
    : out_(out),
      in_(in),
      weight_(setup.Offset(weight)),
      bias_(setup.Offset(bias)),
      weights_(setup.weights) {}

void HandwrittenLinear::Forward(const float* x, float* y, int64_t rows, int64_t begin,
                                int64_t end) const {
  Multiply(rows, end - begin, in_, {x, in_, false}, {weights_ + weight_ + begin * in_, in_, true},
           y, end - begin);
}

void HandwrittenLinear::WeightGradients(const float* x, const float* d, int64_t rows, int64_t begin,
                                        int64_t end, bool without_bias, float* gradient) const {
  const int64_t width = end - begin;
  Multiply(width, in_, rows, {d, width, true}, {x, in_, false}, gradient + weight_ + begin * in_,
           in_);
  if (!without_bias) ColumnSums(d, gradient + bias_ + begin, rows, width);
}

void HandwrittenLinear::InputGradient(const float* d, float* dx, int64_t rows, int64_t begin,
                                      int64_t end, bool add) const {
  const int64_t width = end - begin;
  Multiply(rows, in_, width, {d, width, false}, {weights_ + weight_ + begin * in_, in_, false}, dx,
           in_, add);
}

HandwrittenEncoderLayer::HandwrittenEncoderLayer(const HandwrittenSetup& setup, int64_t index,
                                                 bool last_step, EncoderScratch& scratch)
    : spec_(*setup.model.transformer),
      pre_norm_(spec_.norm == "pre"),
      dropout_(setup.model.transformer->dropout),
      steps_(setup.shape.window),
      query_steps_(last_step ? 1 : setup.shape.window),
      in_proj_(setup, NameOf(index, "self_attn.in_proj_weight"),
               NameOf(index, "self_attn.in_proj_bias"), 3 * spec_.width, spec_.width),
      out_proj_(Linear(setup, index, "self_attn.out_proj", spec_.width, spec_.width)),
      linear1_(Linear(setup, index, "linear1", spec_.feedforward, spec_.width)),
      linear2_(Linear(setup, index, "linear2", spec_.width, spec_.feedforward)),
      norm1_(setup, NameOf(index, "norm1"), spec_.width),
      norm2_(setup, NameOf(index, "norm2"), spec_.width),
      scratch_(scratch) {}

void HandwrittenEncoderLayer::KeepIn(EncoderActivations* shared) {
  kept_ = shared != nullptr ? shared : &own_;
  if (shared != nullptr) own_ = EncoderActivations();
}

void HandwrittenEncoderLayer::Reserve() {
  EncoderActivations& a = *kept_;
  const int64_t all = batch_ * steps_ * spec_.width, kept = batch_ * query_steps_ * spec_.width;
  const int64_t probabilities = batch_ * spec_.heads * query_steps_ * steps_;
  const int64_t hidden = batch_ * query_steps_ * spec_.feedforward;
  const bool split = query_steps_ != steps_;
  if (pre_norm_) Grow(a.normed, all);
  for (auto* values : {&a.query_key_value, &scratch_.d_query_key_value}) {
    Grow(*values, (split ? 2 : 3) * all);
  }
  if (split) Grow(a.query, kept);
  if (split) Grow(scratch_.d_query, kept);
  Grow(a.probabilities, probabilities);
  for (auto* values : {&a.mixed, &a.middle, &out_, &scratch_.d_wide}) Grow(*values, kept);
  if (pre_norm_) Grow(a.normed_middle, kept);
  if (dropout_ > 0) Grow(scratch_.dropped, kept);
  for (auto* values : {&a.hidden, &scratch_.d_hidden}) Grow(*values, hidden);
}

const float* HandwrittenEncoderLayer::Kept(const float* x, std::vector<float>& copies) const {
  if (query_steps_ == steps_) return x;
  Grow(copies, batch_ * spec_.width);
  for (int64_t b = 0; b < batch_; ++b) {
    std::copy_n(x + ((b + 1) * steps_ - 1) * spec_.width, spec_.width,
                copies.data() + b * spec_.width);
  }
  return copies.data();
}

void HandwrittenEncoderLayer::AddToKept(const float* d, float* dx) const {
  if (query_steps_ == steps_) return AddTo(d, dx, batch_ * steps_ * spec_.width);
  for (int64_t b = 0; b < batch_; ++b) {
    AddTo(d + b * spec_.width, dx + ((b + 1) * steps_ - 1) * spec_.width, spec_.width);
  }
}

const float* HandwrittenEncoderLayer::DropFactors(int64_t site, std::vector<float>& factors,
                                                  int64_t size) const {
  if (dropout_ <= 0) return nullptr;
  Grow(factors, size + DropoutMask::kStep);
  DropoutFactors(dropout_, seed_ + static_cast<uint64_t>(site), factors.data(), size);
  return factors.data();
}

const float* HandwrittenEncoderLayer::ThroughDropout(const float* d,
                                                     const std::vector<float>& factors,
                                                     int64_t size) {
  if (dropout_ <= 0) return d;
  Scale(d, factors.data(), scratch_.dropped.data(), size);
  return scratch_.dropped.data();
}

void HandwrittenEncoderLayer::Attend(const float* seen) {
  const int64_t width = spec_.width, rows = batch_ * steps_;
  seen_ = seen;
  queries_ = Kept(seen, kept_->kept_seen);
  float* all = kept_->query_key_value.data();
  Rows<const float> query{all, 3 * width}, key{all + width, 3 * width};
  Rows<const float> value{all + 2 * width, 3 * width};
  if (query_steps_ == steps_) {
    in_proj_.Forward(seen, all, rows);
    AddBias(all, in_proj_.bias(), rows, 3 * width);
  } else {
    in_proj_.Forward(queries_, kept_->query.data(), batch_, 0, width);
    AddBias(kept_->query.data(), in_proj_.bias(), batch_, width);
    in_proj_.Forward(seen, all, rows, width, 3 * width);
    AddBias(all, in_proj_.bias() + width, rows, 2 * width);
    query = {kept_->query.data(), width};
    key = {all, 2 * width};
    value = {all + width, 2 * width};
  }
  const float* factors = DropFactors(kProbabilities, kept_->probability_factors,
                                     batch_ * spec_.heads * query_steps_ * steps_);
  AttentionForward({batch_, steps_, query_steps_, width, spec_.heads}, query, key, value, factors,
                   kept_->probabilities.data(), kept_->mixed.data(), scratch_.small);
}

void HandwrittenEncoderLayer::AttendBackward(const float* d_mixed, float* d_seen, float* gradient) {
  const int64_t width = spec_.width, rows = batch_ * steps_;
  const bool split = query_steps_ != steps_;
  const int64_t stride = split ? 2 * width : 3 * width, skip = split ? 0 : width;
  const float* all = kept_->query_key_value.data();
  float* d_all = scratch_.d_query_key_value.data();
  const Rows<const float> query =
      split ? Rows<const float>{kept_->query.data(), width} : Rows<const float>{all, stride};
  const Rows<float> d_query =
      split ? Rows<float>{scratch_.d_query.data(), width} : Rows<float>{d_all, stride};
  AttentionBackward({batch_, steps_, query_steps_, width, spec_.heads}, query, {all + skip, stride},
                    {all + skip + width, stride},
                    dropout_ > 0 ? kept_->probability_factors.data() : nullptr,
                    kept_->probabilities.data(), d_mixed, d_query, {d_all + skip, stride},
                    {d_all + skip + width, stride}, scratch_.small);
  if (!split) {
    in_proj_.WeightGradients(seen_, d_all, rows, 0, 3 * width, false, gradient);
    in_proj_.InputGradient(d_all, d_seen, rows, 0, 3 * width, false);
    return;
  }
  in_proj_.WeightGradients(queries_, scratch_.d_query.data(), batch_, 0, width, false, gradient);
  in_proj_.WeightGradients(seen_, d_all, rows, width, 3 * width, false, gradient);
  in_proj_.InputGradient(d_all, d_seen, rows, width, 3 * width, false);
  in_proj_.InputGradient(scratch_.d_query.data(), scratch_.d_wide.data(), batch_, 0, width, false);
  AddToKept(scratch_.d_wide.data(), d_seen);
}

const float* HandwrittenEncoderLayer::Forward(const float* x, int64_t batch, uint64_t seed) {
  x_ = x;
  batch_ = batch;
  seed_ = seed;
  Reserve();
  const int64_t width = spec_.width, rows = batch * query_steps_, size = rows * width;
  if (pre_norm_) norm1_.Forward(x, kept_->normed.data(), batch * steps_, kept_->norm1);
  Attend(pre_norm_ ? kept_->normed.data() : x);
  float* middle = kept_->middle.data();
  out_proj_.Forward(kept_->mixed.data(), middle, rows);
  AddResidual(middle, out_proj_.bias(), DropFactors(kMixed, kept_->mixed_factors, size),
              Kept(x, kept_->kept_x), middle, rows, width);
  const float* taken = middle;  // by the second half's network
  if (pre_norm_) {
    norm2_.Forward(middle, kept_->normed_middle.data(), rows, kept_->norm2);
    taken = kept_->normed_middle.data();
  } else {
    norm1_.Forward(middle, middle, rows, kept_->norm1);
  }
  linear1_.Forward(taken, kept_->hidden.data(), rows);
  if (dropout_ > 0) {
    BiasReluDropout(kept_->hidden.data(), linear1_.bias(), rows, spec_.feedforward, dropout_,
                    seed_ + kHidden);
  } else {
    BiasRelu(kept_->hidden.data(), linear1_.bias(), rows, spec_.feedforward);
  }
  linear2_.Forward(kept_->hidden.data(), out_.data(), rows);
  AddResidual(out_.data(), linear2_.bias(), DropFactors(kOut, kept_->out_factors, size), middle,
              out_.data(), rows, width);
  if (!pre_norm_) norm2_.Forward(out_.data(), out_.data(), rows, kept_->norm2);
  return out_.data();
}

void HandwrittenEncoderLayer::Backward(float* d, float* dx, float* gradient) {
  const int64_t width = spec_.width, forward = spec_.feedforward;
  const int64_t rows = batch_ * query_steps_, size = rows * width;
  if (!pre_norm_) norm2_.Backward(d, d, rows, kept_->norm2, gradient);
  // d is the gradient by the second sum, and through it by the first.
  const float* back = ThroughDropout(d, kept_->out_factors, size);
  linear2_.WeightGradients(kept_->hidden.data(), back, rows, 0, width, false, gradient);
  linear2_.InputGradient(back, scratch_.d_hidden.data(), rows, 0, width, false);
  ReluBackward(kept_->hidden.data(), DropoutMask::Scale(dropout_), scratch_.d_hidden.data(),
               gradient + linear1_.bias_offset(), rows, forward);
  const float* taken = pre_norm_ ? kept_->normed_middle.data() : kept_->middle.data();
  linear1_.WeightGradients(taken, scratch_.d_hidden.data(), rows, 0, forward, true, gradient);
  if (pre_norm_) {
    linear1_.InputGradient(scratch_.d_hidden.data(), scratch_.d_wide.data(), rows, 0, forward, false);
    norm2_.Backward(scratch_.d_wide.data(), scratch_.d_wide.data(), rows, kept_->norm2, gradient);
    AddTo(scratch_.d_wide.data(), d, size);
  } else {
    linear1_.InputGradient(scratch_.d_hidden.data(), d, rows, 0, forward, true);
    norm1_.Backward(d, d, rows, kept_->norm1, gradient);
  }
  back = ThroughDropout(d, kept_->mixed_factors, size);
  out_proj_.WeightGradients(kept_->mixed.data(), back, rows, 0, width, false, gradient);
  // The mixed values are no longer needed, so their gradient overwrites them.
  out_proj_.InputGradient(back, kept_->mixed.data(), rows, 0, width, false);
  AttendBackward(kept_->mixed.data(), dx, gradient);
  if (pre_norm_) norm1_.Backward(dx, dx, batch_ * steps_, kept_->norm1, gradient);
  AddToKept(d, dx);
}

}  // namespace traind
