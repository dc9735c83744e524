#pragma once

#include <memory>

#include "worker/model/static_backward.h"

namespace traind {

// Of CreateTextEncoder's network.
std::unique_ptr<StaticBackward> CreateStaticText(const StaticSetup& setup);

}  // namespace traind
