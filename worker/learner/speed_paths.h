#pragma once

namespace traind {

// Faster ways to the same result, each of which may be switched off. Where one does
// not apply the plain way is taken.
struct SpeedPaths {
  bool handwritten_backward = true;  // CPU: passes written by hand (handwritten_backward.h)
  bool handwritten_forward = true;   // CPU: prediction without LibTorch (handwritten_forward.h)
  bool fused_optimizer = true;       // CPU: one pass over all weights, vectorised for the machine
  bool cuda_graph = false;           // GPU: a step of fixed shape is recorded and launched at once
  bool cudnn_benchmark = true;       // GPU: cuDNN times its algorithms for each new shape
};

}  // namespace traind
