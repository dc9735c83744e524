#pragma once

#include <memory>

#include "worker/model/handwritten/handwritten_backward.h"

namespace traind {

// Of CreateLstm's network: back-propagation through time (Werbos 1990), time-major, with
// the products that do not wait for the step before made over all steps at once.
// Float32 or bf16 (matrix products in bf16, all else in float32).
std::unique_ptr<HandwrittenBackward> CreateHandwrittenLstm(const HandwrittenSetup& setup);

}  // namespace traind
