// What is known of the time that volumes take to be predicted.
#pragma once

#include <absl/time/time.h>

#include <cstdint>
#include <string>

#include "server/domain/job.h"

namespace traind {

// Returns the seconds that the Job's slowest model took for a volume of its validation, on its
// slot; 0: that is not known.
double SecondsPerVolume(const Job& source);

// Returns a warning, if one model of the Job would need longer than `left` for so many volumes, of
// the size of those that it has seen; else "".
std::string VolumeTimeWarning(const Job& source, int64_t volumes, absl::Duration left);

}  // namespace traind
