#pragma once

#include <memory>

#include "worker/model/handwritten/handwritten_backward.h"

namespace traind {

// The network of CreateLstm, trained by back-propagation through time (Werbos 1990). Data are
// time-major, and products that do not depend on the previous step are computed for all steps
// at once. Supports float32 and bf16 (matrix products in bf16, everything else in float32).
std::unique_ptr<HandwrittenBackward> CreateHandwrittenLstm(const HandwrittenSetup& setup);

}  // namespace traind
