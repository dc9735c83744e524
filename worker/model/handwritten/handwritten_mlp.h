#pragma once

#include <memory>

#include "worker/model/handwritten/handwritten_backward.h"

namespace traind {

// The network of CreateMlp in float32 or bf16 (matrix products in bf16, everything else in
// float32). Returns null for another precision, and for a network without hidden layers.
std::unique_ptr<HandwrittenBackward> CreateHandwrittenMlp(const HandwrittenSetup& setup);

}  // namespace traind
