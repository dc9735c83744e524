#pragma once

#include <string>

namespace traind {

// A new one for each call of trainctl: repetitions within the call are one Job,
// the next call is another.
std::string RandomRequestId();

}  // namespace traind
