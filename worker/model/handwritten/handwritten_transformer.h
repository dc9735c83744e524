#pragma once

#include <memory>

#include "worker/model/handwritten/handwritten_backward.h"

namespace traind {

// The network of CreateTransformer in float32: norms, residuals, biases and activations are
// fused between the products, attention is a small product per head, and the last layer
// computes only the steps that the head sees. Returns null for another precision.
std::unique_ptr<HandwrittenBackward> CreateHandwrittenTransformer(const HandwrittenSetup& setup);

}  // namespace traind
