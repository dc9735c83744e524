#pragma once

#include <memory>

#include "worker/model/handwritten/handwritten_backward.h"

namespace traind {

// Of CreateTextEncoder's network.
std::unique_ptr<HandwrittenBackward> CreateHandwrittenText(const HandwrittenSetup& setup);

}  // namespace traind
