// The cores of this machine, and how many slots they may carry.
#pragma once

#include <absl/status/status.h>

namespace traind {

// Cores that this process may run on, and whose time its container gives it.
int UsableCores();

// Errors: InvalidArgument: so many slots are a mistake, on GPUs as on these cores.
absl::Status CheckSlots(int slots, int cores);

}  // namespace traind
