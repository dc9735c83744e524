#include "worker/learner/loss_scaler.h"

#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

namespace traind {

LossScaler::LossScaler(c10::Device device)
    : scale_(at::full({1}, kInitialScale, at::TensorOptions(device).dtype(at::kFloat))),
      growth_tracker_(at::zeros({1}, at::TensorOptions(device).dtype(at::kInt))),
      found_inf_(at::zeros({1}, at::TensorOptions(device).dtype(at::kFloat))) {}

const at::Tensor& LossScaler::Unscale(const std::vector<at::Tensor>& gradients) {
  found_inf_.zero_();
  at::_amp_foreach_non_finite_check_and_unscale_(
      gradients, found_inf_, scale_.to(at::kDouble).reciprocal().to(at::kFloat));
  return found_inf_;
}

void LossScaler::Update() {
  at::_amp_update_scale_(scale_, growth_tracker_, found_inf_, kGrowth, kBackoff, kGrowthInterval);
}

double LossScaler::scale() const { return scale_.item<double>(); }
int64_t LossScaler::growth_tracker() const { return growth_tracker_.item<int64_t>(); }

void LossScaler::Restore(double scale, int64_t growth_tracker) {
  scale_.fill_(scale);
  growth_tracker_.fill_(growth_tracker);
}

}  // namespace traind
