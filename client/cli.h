// trainctl's command line.
#pragma once

#include <string>
#include <vector>

#include "client/environment.h"

namespace traind {

// Runs `trainctl args...` and returns its exit code.
int RunTrainctl(const std::vector<std::string>& args, Environment& environment);

}  // namespace traind
