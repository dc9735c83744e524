#pragma once

#include <string>

namespace traind {

// Returns a new id for each call of trainctl: repetitions within the call mean the same Job, the
// next call another one.
std::string RandomRequestId();

}  // namespace traind
