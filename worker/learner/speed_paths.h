#pragma once

#include "proto/plain/job.h"

namespace traind {

// Faster ways to the same result, each of which may be switched off (proto/job.proto). Where one
// does not apply the plain way is taken.
using SpeedPaths = plain::PathsSpec;

}  // namespace traind
