#pragma once

#include <memory>

#include "worker/model/handwritten/handwritten_backward.h"

namespace traind {

// The network of CreateTextEncoder.
std::unique_ptr<HandwrittenBackward> CreateHandwrittenText(const HandwrittenSetup& setup);

}  // namespace traind
