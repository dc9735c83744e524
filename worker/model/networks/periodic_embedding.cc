#include "worker/model/networks/periodic_embedding.h"

#include <ATen/ops/baddbmm.h>
#include <ATen/ops/cat.h>

#include <cmath>

namespace traind {
namespace {

constexpr double kPi = 3.14159265358979323846;

}  // namespace

PeriodicEmbedding::PeriodicEmbedding(const plain::NumericEmbeddingSpec& spec, int64_t columns,
                                     Parameters& parameters)
    : columns_(columns), size_(spec.size) {
  const int64_t frequencies = spec.frequencies, learnt = spec.size - 1;
  const Initial within{Initial::Kind::kUniform, 1 / std::sqrt(static_cast<double>(frequencies))};
  frequencies_ = parameters.Declare("numbers.frequencies", {columns, 1, frequencies},
                                    {Initial::Kind::kNormal, spec.scale});
  phases_ = parameters.Declare("numbers.phases", {columns, 1, frequencies},
                               {Initial::Kind::kUniform, kPi});
  weight_ = parameters.Declare("numbers.weight", {columns, frequencies, learnt}, within);
  bias_ = parameters.Declare("numbers.bias", {columns, 1, learnt}, within);
}

at::Tensor PeriodicEmbedding::Embed(const std::vector<at::Tensor>& weights,
                                    const at::Tensor& numeric) const {
  std::vector<int64_t> sizes = numeric.sizes().vec();
  sizes.back() = width();
  const at::Tensor x = numeric.reshape({-1, columns_}).t().unsqueeze(2);  // [columns, B, 1]
  const at::Tensor waves = x.mul(weights[frequencies_]).mul(2 * kPi).add(weights[phases_]).cos();
  const at::Tensor learnt = at::baddbmm(weights[bias_], waves, weights[weight_]);
  const at::Tensor embedded = at::cat({x, learnt.to(x.scalar_type())}, 2);  // [columns, B, size]
  return embedded.transpose(0, 1).reshape(sizes);
}

}  // namespace traind
