// The memory of this process.
#pragma once

#include <cstdint>

namespace traind {

// The peak of resident bytes since the process began, or since the last reset; 0 if the kernel
// does not tell.
int64_t PeakResidentBytes();
void ResetPeakResident();

// true: the process keeps freed memory for the next batch, which needs blocks of the same
// sizes. false: large blocks return to the system at once. That is slower, but avoids
// fragmentation if block sizes change.
void KeepFreedMemory(bool keep);

}  // namespace traind
