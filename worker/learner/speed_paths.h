#pragma once

namespace traind {

// Faster ways to compute the same result, each with a switch. The plain way is used
// where one does not apply.
struct SpeedPaths {
  bool handwritten_backward = true;  // CPU: see handwritten_backward.h
  bool handwritten_forward = true;   // CPU: prediction without LibTorch (handwritten_forward.h)
  bool fused_optimizer = true;       // CPU: one pass over all weights, vectorised for the machine
  bool cuda_graph = false;  // GPU: a step of fixed shape is recorded, then launched as one graph
  bool cudnn_benchmark = true;  // GPU: cuDNN times its algorithms for each new shape
};

}  // namespace traind
