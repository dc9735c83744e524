// Advice on the time that a Job had left at its end.
// Threads: safe, pure.
#pragma once

#include <string>

#include "proto/job.pb.h"

namespace traind {

// Whether the Job came to its end so early that advice is of use: half of its time before the
// deadline, or a tenth of it where the answer is DEGRADED.
bool EndedEarly(const v1::Job& job);

// Tells how a Job that ended early can use the rest of its time; empty: it cannot.
// spec: the Job's, with all defaults filled in.
std::string TimeLeftText(const v1::Job& job, const v1::JobSpec& spec);

}  // namespace traind
