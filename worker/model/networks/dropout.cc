#include "worker/model/networks/dropout.h"

#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>

#include "worker/model/kernels/dropout_mask.h"
#include "worker/model/kernels/layer_loops.h"

namespace traind {

at::Tensor Dropout(const at::Tensor& x, double p, uint64_t seed) {
  if (x.is_cuda()) return at::dropout(x, p, /*train=*/true);
  constexpr int64_t kStep = DropoutMask::kStep;
  const int64_t size = x.numel();
  const at::Tensor mask =
      at::empty({(size + kStep - 1) / kStep * kStep}, at::TensorOptions().dtype(at::kFloat));
  DropoutFactors(p, seed, mask.mutable_data_ptr<float>(), size);
  return x.mul(mask.narrow(0, 0, size).view(x.sizes()).to(x.scalar_type()));
}

}  // namespace traind
