// The most memory that this process has held at once.
#pragma once

#include <cstdint>

namespace traind {

// Resident bytes since the process began, or since the last reset; 0 where the kernel
// does not tell.
int64_t PeakResidentBytes();
void ResetPeakResident();

}  // namespace traind
