#include "worker/model/networks/image_network.h"

#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/replication_pad2d.h>

#include <algorithm>
#include <cmath>

#include "common/data/weights/image_architectures.h"
#include "worker/model/networks/dropout.h"

namespace traind {
namespace {

int64_t MultipleOf(const std::string& architecture) {
  const ImageArchitecture* const known = FindImageArchitecture(architecture);
  return known == nullptr ? 1 : known->multiple;
}

// image: [B, C, H, W]. Its sides become multiples of `multiple`.
at::Tensor Scaled(const at::Tensor& image, double scale, int64_t multiple) {
  const auto side = [&](int64_t extent) {
    const double wanted = scale * static_cast<double>(extent) / static_cast<double>(multiple);
    return std::max<int64_t>(1, std::llround(wanted)) * multiple;
  };
  const int64_t height = side(image.size(2)), width = side(image.size(3));
  if (height == image.size(2) && width == image.size(3)) return image;
  return at::_upsample_bilinear2d_aa(image, {height, width}, /*align_corners=*/false)
      .contiguous(at::MemoryFormat::ChannelsLast);
}

// The image behind a window that has moved by dy and dx; its edges are repeated.
at::Tensor Shifted(const at::Tensor& image, int64_t dy, int64_t dx) {
  const int64_t by_y = std::abs(dy), by_x = std::abs(dx);
  return at::replication_pad2d(image, {by_x, by_x, by_y, by_y})
      .narrow(2, by_y + dy, image.size(2))
      .narrow(3, by_x + dx, image.size(3))
      .contiguous(at::MemoryFormat::ChannelsLast);
}

}  // namespace

ImageNetwork::ImageNetwork(const plain::CnnSpec& spec, const ModelShape& shape,
                           Parameters& parameters)
    : columns_(shape, parameters),
      dropout_(spec.dropout),
      drop_path_(spec.drop_path),
      mirror_(spec.mirror),
      view_shift_(spec.view_shift),
      view_scales_(spec.view_scales.empty()
                       ? std::vector<double>{1}
                       : std::vector<double>(spec.view_scales.begin(), spec.view_scales.end())),
      multiple_(MultipleOf(spec.architecture)) {}

void ImageNetwork::DeclareHead(const std::string& name, int64_t body_width, int64_t outputs,
                               Parameters& parameters) {
  parameters.SetDepth(kHeadDepth);
  body_width_ = body_width;
  head_ = DeclareLinear(name, body_width + columns_.width(), outputs, parameters);
}

at::Tensor ImageNetwork::Body(const std::vector<at::Tensor>& weights, const Inputs& inputs,
                              bool training) const {
  // The head's dropout has the seed itself.
  const Pass pass{training, inputs.dropout_seed + 1, inputs.fixed_below};
  if (training) return Pooled(weights, inputs.image, pass);
  at::Tensor sum;
  int64_t views = 0;
  EachView(inputs.image, [&](const at::Tensor& view) {
    const at::Tensor body = Pooled(weights, view, pass);
    sum = sum.defined() ? sum.add(body) : body;
    ++views;
  });
  return views == 1 ? sum : sum.mul(1.0 / static_cast<double>(views));
}

template <class Take>
void ImageNetwork::EachView(const at::Tensor& image, const Take& take) const {
  const auto with_mirror = [&](const at::Tensor& view) {
    take(view);
    if (mirror_) take(view.flip({3}));
  };
  for (const double scale : view_scales_) {
    const at::Tensor scaled = Scaled(image, scale, multiple_);
    with_mirror(scaled);
    if (view_shift_ == 0) continue;
    const auto pixels = [this](int64_t extent) {
      return std::llround(view_shift_ * static_cast<double>(extent));
    };
    const int64_t dy = pixels(scaled.size(2)), dx = pixels(scaled.size(3));
    for (const int64_t down : {-dy, dy}) {
      for (const int64_t right : {-dx, dx}) with_mirror(Shifted(scaled, down, right));
    }
  }
}

at::Tensor ImageNetwork::Head(const std::vector<at::Tensor>& weights, const Inputs& inputs,
                              const at::Tensor& body, bool training) const {
  at::Tensor x = body;
  if (columns_.width() > 0) x = at::cat({x, columns_.Concatenate(weights, inputs)}, 1);
  if (training && dropout_ > 0) x = Dropout(x, dropout_, inputs.dropout_seed);
  return at::linear(x, weights[head_.weight], weights[head_.bias]);
}

at::Tensor ImageNetwork::Run(const Part& part, const std::vector<at::Tensor>& weights,
                             const std::vector<size_t>& used, const at::Tensor& x,
                             const Pass& pass) const {
  return pass.training && recompute_ ? RecomputedPart(part, weights, used, {x})
                                     : part(weights, {x});
}

at::Tensor ImageNetwork::DropPath(const at::Tensor& branch, size_t block, size_t blocks,
                                  size_t branch_of_block, const Pass& pass) const {
  if (!pass.training || drop_path_ == 0 || block == 0) return branch;
  const double share = drop_path_ * static_cast<double>(block) / static_cast<double>(blocks - 1);
  std::vector<int64_t> of_samples(static_cast<size_t>(branch.dim()), 1);
  of_samples[0] = branch.size(0);
  constexpr size_t kBranches = 2;  // of a block, at most
  const uint64_t seed = pass.seed + block * kBranches + branch_of_block;
  return branch.mul(Dropout(at::ones(of_samples, branch.options()), share, seed));
}

}  // namespace traind
