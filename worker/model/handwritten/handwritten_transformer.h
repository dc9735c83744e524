#pragma once

#include <memory>

#include "worker/model/handwritten/handwritten_backward.h"

namespace traind {

// Of CreateTransformer's network, float32: norms, residuals, biases and activations fused
// between the products, attention as small products per head, and of the last layer only
// what the head sees. Null in another precision.
std::unique_ptr<HandwrittenBackward> CreateHandwrittenTransformer(const HandwrittenSetup& setup);

}  // namespace traind
