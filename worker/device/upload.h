// Copies from the host to the device.
#pragma once

#include <ATen/core/Tensor.h>

namespace traind {

// The tensor on the device; on the CPU the tensor itself. To a GPU it goes by page-locked memory,
// so the host does not wait for it; the device makes the copy when it comes to it.
inline at::Tensor Upload(const at::Tensor& host, c10::Device device) {
  return device.is_cuda() ? host.pin_memory().to(device, /*non_blocking=*/true) : host;
}

}  // namespace traind
