#include "worker/model/static_encoder_layer.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "worker/model/dropout_mask.h"
#include "worker/model/encoder_loops.h"
#include "worker/model/layer_loops.h"
#include "worker/model/lstm_loops.h"

namespace traind {
namespace {

std::string NameOf(int64_t index, const char* part) {
  return absl::StrCat("encoder.layers.", index, ".", part);
}

StaticLinear Linear(const StaticSetup& setup, int64_t index, const char* part, int64_t out,
                    int64_t in) {
  const std::string name = NameOf(index, part);
  return StaticLinear(setup, name + ".weight", name + ".bias", out, in);
}

// The seeds that a forward pass of CreateTransformer's network takes in turn.
enum Site : int64_t { kShares, kMixed, kHidden, kOut };

}  // namespace

StaticNorm::StaticNorm(const StaticSetup& setup, const std::string& name, int64_t width)
    : width_(width),
      weight_(setup.Offset(name + ".weight")),
      bias_(setup.Offset(name + ".bias")),
      weights_(setup.weights) {}

void StaticNorm::Forward(const float* x, float* y, int64_t rows) {
  centred_.resize(static_cast<size_t>(rows * width_));
  inverse_.resize(static_cast<size_t>(rows));
  LayerNorm(x, weights_ + weight_, weights_ + bias_, y, centred_.data(), inverse_.data(), rows,
            width_);
}

void StaticNorm::Backward(const float* dy, float* dx, int64_t rows, float* gradient) {
  std::fill_n(gradient + weight_, width_, 0.0f);
  std::fill_n(gradient + bias_, width_, 0.0f);
  LayerNormBackward(dy, centred_.data(), inverse_.data(), weights_ + weight_, dx,
                    gradient + weight_, gradient + bias_, rows, width_);
}

StaticLinear::StaticLinear(const StaticSetup& setup, const std::string& weight,
                           const std::string& bias, int64_t out, int64_t in)
    : out_(out),
      in_(in),
      weight_(setup.Offset(weight)),
      bias_(setup.Offset(bias)),
      weights_(setup.weights) {}

void StaticLinear::Forward(const float* x, float* y, int64_t rows, int64_t begin,
                           int64_t end) const {
  Multiply(rows, end - begin, in_, {x, in_, false}, {weights_ + weight_ + begin * in_, in_, true},
           y, end - begin);
}

void StaticLinear::Gradients(const float* x, const float* d, int64_t rows, int64_t begin,
                             int64_t end, bool without_bias, float* gradient) const {
  const int64_t width = end - begin;
  Multiply(width, in_, rows, {d, width, true}, {x, in_, false}, gradient + weight_ + begin * in_,
           in_);
  if (!without_bias) ColumnSums(d, gradient + bias_ + begin, rows, width);
}

void StaticLinear::Input(const float* d, float* dx, int64_t rows, int64_t begin, int64_t end,
                         bool add) const {
  const int64_t width = end - begin;
  Multiply(rows, in_, width, {d, width, false}, {weights_ + weight_ + begin * in_, in_, false}, dx,
           in_, add);
}

StaticEncoderLayer::StaticEncoderLayer(const StaticSetup& setup, int64_t index, bool last_step)
    : spec_(setup.model.transformer),
      dropout_(setup.model.dropout),
      steps_(setup.shape.window),
      asking_(last_step ? 1 : setup.shape.window),
      in_proj_(setup, NameOf(index, "self_attn.in_proj_weight"),
               NameOf(index, "self_attn.in_proj_bias"), 3 * spec_.width, spec_.width),
      out_proj_(Linear(setup, index, "self_attn.out_proj", spec_.width, spec_.width)),
      linear1_(Linear(setup, index, "linear1", spec_.feedforward, spec_.width)),
      linear2_(Linear(setup, index, "linear2", spec_.width, spec_.feedforward)),
      norm1_(setup, NameOf(index, "norm1"), spec_.width),
      norm2_(setup, NameOf(index, "norm2"), spec_.width) {}

void StaticEncoderLayer::Reserve(int64_t batch) {
  if (batch == batch_) return;
  batch_ = batch;
  const size_t all = static_cast<size_t>(batch * steps_ * spec_.width);
  const size_t kept = static_cast<size_t>(batch * asking_ * spec_.width);
  const bool split = asking_ != steps_;
  if (spec_.pre_norm) normed_.resize(all);
  query_key_value_.resize((split ? 2 : 3) * all);
  d_query_key_value_.resize(query_key_value_.size());
  if (split) query_.resize(kept);
  if (split) d_query_.resize(kept);
  shares_.resize(static_cast<size_t>(batch * spec_.heads * asking_ * steps_));
  if (dropout_ > 0) dropped_.resize(shares_.size());
  for (auto* values : {&mixed_, &middle_, &normed_middle_, &out_, &d_wide_, &room_}) {
    values->resize(kept);
  }
  hidden_.resize(static_cast<size_t>(batch * asking_ * spec_.feedforward));
  d_hidden_.resize(hidden_.size());
}

const float* StaticEncoderLayer::Kept(const float* x, std::vector<float>& copies) const {
  if (asking_ == steps_) return x;
  copies.resize(static_cast<size_t>(batch_ * spec_.width));
  for (int64_t b = 0; b < batch_; ++b) {
    std::copy_n(x + ((b + 1) * steps_ - 1) * spec_.width, spec_.width,
                copies.data() + b * spec_.width);
  }
  return copies.data();
}

void StaticEncoderLayer::AddToKept(const float* d, float* dx) const {
  if (asking_ == steps_) return AddTo(d, dx, batch_ * steps_ * spec_.width);
  for (int64_t b = 0; b < batch_; ++b) {
    AddTo(d + b * spec_.width, dx + ((b + 1) * steps_ - 1) * spec_.width, spec_.width);
  }
}

float* StaticEncoderLayer::DropFactors(int64_t site, std::vector<float>& factors, int64_t size) {
  if (dropout_ <= 0) return nullptr;
  factors.resize(static_cast<size_t>(size + DropoutMask::kStep));
  DropoutFactors(dropout_, seed_ + static_cast<uint64_t>(site), factors.data(), size);
  return factors.data();
}

const float* StaticEncoderLayer::ThroughDropout(const float* d, const std::vector<float>& factors,
                                                int64_t size) {
  if (dropout_ <= 0) return d;
  Scale(d, factors.data(), room_.data(), size);
  return room_.data();
}

void StaticEncoderLayer::Attend(const float* seen) {
  const int64_t width = spec_.width, rows = batch_ * steps_;
  seen_ = seen;
  asked_ = Kept(seen, kept_seen_);
  float* all = query_key_value_.data();
  Rows<const float> query{all, 3 * width}, key{all + width, 3 * width};
  Rows<const float> value{all + 2 * width, 3 * width};
  if (asking_ == steps_) {
    in_proj_.Forward(seen, all, rows);
    AddBias(all, in_proj_.bias(), rows, 3 * width);
  } else {
    in_proj_.Forward(asked_, query_.data(), batch_, 0, width);
    AddBias(query_.data(), in_proj_.bias(), batch_, width);
    in_proj_.Forward(seen, all, rows, width, 3 * width);
    AddBias(all, in_proj_.bias() + width, rows, 2 * width);
    query = {query_.data(), width};
    key = {all, 2 * width};
    value = {all + width, 2 * width};
  }
  const float* factors = DropFactors(kShares, share_factors_, static_cast<int64_t>(shares_.size()));
  AttentionForward({batch_, steps_, asking_, width, spec_.heads}, query, key, value, factors,
                   shares_.data(), dropped_.data(), mixed_.data());
}

void StaticEncoderLayer::AttendBackward(const float* d_mixed, float* d_seen, float* gradient) {
  const int64_t width = spec_.width, rows = batch_ * steps_;
  const bool split = asking_ != steps_;
  const int64_t stride = split ? 2 * width : 3 * width, skip = split ? 0 : width;
  const float* all = query_key_value_.data();
  float* d_all = d_query_key_value_.data();
  const Rows<const float> query =
      split ? Rows<const float>{query_.data(), width} : Rows<const float>{all, stride};
  const Rows<float> d_query =
      split ? Rows<float>{d_query_.data(), width} : Rows<float>{d_all, stride};
  AttentionBackward({batch_, steps_, asking_, width, spec_.heads}, query, {all + skip, stride},
                    {all + skip + width, stride}, dropout_ > 0 ? share_factors_.data() : nullptr,
                    shares_.data(), dropped_.data(), d_mixed, d_query, {d_all + skip, stride},
                    {d_all + skip + width, stride}, small_room_);
  if (!split) {
    in_proj_.Gradients(seen_, d_all, rows, 0, 3 * width, false, gradient);
    in_proj_.Input(d_all, d_seen, rows, 0, 3 * width, false);
    return;
  }
  in_proj_.Gradients(asked_, d_query_.data(), batch_, 0, width, false, gradient);
  in_proj_.Gradients(seen_, d_all, rows, width, 3 * width, false, gradient);
  in_proj_.Input(d_all, d_seen, rows, width, 3 * width, false);
  in_proj_.Input(d_query_.data(), d_wide_.data(), batch_, 0, width, false);
  AddToKept(d_wide_.data(), d_seen);
}

const float* StaticEncoderLayer::Forward(const float* x, int64_t batch, uint64_t seed) {
  Reserve(batch);
  seed_ = seed;
  const int64_t width = spec_.width, rows = batch * asking_, size = rows * width;
  if (spec_.pre_norm) norm1_.Forward(x, normed_.data(), batch * steps_);
  Attend(spec_.pre_norm ? normed_.data() : x);
  float* middle = middle_.data();
  out_proj_.Forward(mixed_.data(), middle, rows);
  AddResidual(middle, out_proj_.bias(), DropFactors(kMixed, mixed_factors_, size), Kept(x, kept_x_),
              middle, rows, width);
  const float* taken = middle;  // by the second half's network
  if (spec_.pre_norm) {
    norm2_.Forward(middle, normed_middle_.data(), rows);
    taken = normed_middle_.data();
  } else {
    norm1_.Forward(middle, middle, rows);
  }
  linear1_.Forward(taken, hidden_.data(), rows);
  if (dropout_ > 0) {
    BiasReluDropout(hidden_.data(), linear1_.bias(), rows, spec_.feedforward, dropout_,
                    seed_ + kHidden);
  } else {
    BiasRelu(hidden_.data(), linear1_.bias(), rows, spec_.feedforward);
  }
  linear2_.Forward(hidden_.data(), out_.data(), rows);
  AddResidual(out_.data(), linear2_.bias(), DropFactors(kOut, out_factors_, size), middle,
              out_.data(), rows, width);
  if (!spec_.pre_norm) norm2_.Forward(out_.data(), out_.data(), rows);
  return out_.data();
}

void StaticEncoderLayer::Backward(float* d, float* dx, float* gradient) {
  const int64_t width = spec_.width, forward = spec_.feedforward;
  const int64_t rows = batch_ * asking_, size = rows * width;
  if (!spec_.pre_norm) norm2_.Backward(d, d, rows, gradient);
  // d is the gradient by the second sum, and through it by the first.
  const float* back = ThroughDropout(d, out_factors_, size);
  linear2_.Gradients(hidden_.data(), back, rows, 0, width, false, gradient);
  linear2_.Input(back, d_hidden_.data(), rows, 0, width, false);
  ReluBackward(hidden_.data(), DropoutMask::Scale(dropout_), d_hidden_.data(),
               gradient + linear1_.bias_offset(), rows, forward);
  const float* taken = spec_.pre_norm ? normed_middle_.data() : middle_.data();
  linear1_.Gradients(taken, d_hidden_.data(), rows, 0, forward, true, gradient);
  if (spec_.pre_norm) {
    linear1_.Input(d_hidden_.data(), d_wide_.data(), rows, 0, forward, false);
    norm2_.Backward(d_wide_.data(), d_wide_.data(), rows, gradient);
    AddTo(d_wide_.data(), d, size);
  } else {
    linear1_.Input(d_hidden_.data(), d, rows, 0, forward, true);
    norm1_.Backward(d, d, rows, gradient);
  }
  back = ThroughDropout(d, mixed_factors_, size);
  out_proj_.Gradients(mixed_.data(), back, rows, 0, width, false, gradient);
  // mixed_ has been used: the gradient by it takes its place.
  out_proj_.Input(back, mixed_.data(), rows, 0, width, false);
  AttendBackward(mixed_.data(), dx, gradient);
  if (spec_.pre_norm) norm1_.Backward(dx, dx, batch_ * steps_, gradient);
  AddToKept(d, dx);
}

}  // namespace traind
