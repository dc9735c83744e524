#pragma once

#include <memory>

#include "worker/model/handwritten/handwritten_backward.h"

namespace traind {

// Of CreateMlp's network, float32 or bf16 (matrix products in bf16, all else in
// float32). Null for another precision, and without hidden layers.
std::unique_ptr<HandwrittenBackward> CreateHandwrittenMlp(const HandwrittenSetup& setup);

}  // namespace traind
