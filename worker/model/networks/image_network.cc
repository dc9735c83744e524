#include "worker/model/networks/image_network.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>

#include "worker/model/networks/dropout.h"

namespace traind {

ImageNetwork::ImageNetwork(const plain::CnnSpec& spec, const ModelShape& shape,
                           Parameters& parameters)
    : columns_(shape, parameters),
      dropout_(spec.dropout),
      drop_path_(spec.drop_path),
      mirror_(spec.mirror) {}

void ImageNetwork::DeclareHead(const std::string& name, int64_t body_width, int64_t outputs,
                               Parameters& parameters) {
  parameters.SetDepth(kHeadDepth);
  body_width_ = body_width;
  head_ = DeclareLinear(name, body_width + columns_.width(), outputs, parameters);
}

at::Tensor ImageNetwork::Body(const std::vector<at::Tensor>& weights, const Inputs& inputs,
                              bool training) const {
  const Pass pass{training, inputs.dropout_seed + 1};  // the head's dropout has the seed itself
  const at::Tensor body = Pooled(weights, inputs.image, pass);
  if (training || !mirror_) return body;
  return body.add(Pooled(weights, inputs.image.flip({3}), pass)).mul(0.5);
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
