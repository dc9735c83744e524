// The memory of this process.
#pragma once

#include <cstdint>

namespace traind {

// Resident bytes since the process began, or since the last reset; 0 where the kernel
// does not tell.
int64_t PeakResidentBytes();
void ResetPeakResident();

// true: memory that is freed stays with the process, for the next batch, which needs
// blocks of the same sizes. false: large blocks go back to the system at once: slower,
// but blocks of other sizes leave no holes that nobody can use.
void KeepFreedMemory(bool keep);

}  // namespace traind
