// Checks the facts of a Worker. Its figures and paths come from outside of traind, so they are
// checked here, once, before the control core decides by them.
// Threads: safe, pure.
#pragma once

#include <optional>

#include "common/facts/facts.h"
#include "proto/training_service.pb.h"

namespace traind {

// The fact with its figures in their ranges: a duration that is negative or not finite becomes 0,
// "not measured"; a share of rows outside of (0, 1] becomes 1; an end without a reason is INTERNAL.
// nullopt: the fact names a file outside of the folder where such files belong.
std::optional<facts::Fact> CheckedFact(facts::Fact fact);

// Without those that are negative, not finite or, as a share, above 1.
v1::DeviceFigures CheckedFigures(v1::DeviceFigures figures);

}  // namespace traind
