// Whether Ranks can use the GPUs that the driver lists.
#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <string>
#include <vector>

#include "worker/daemon/devices.h"

namespace traind::worker {

// Lets a Rank (`trainrank check-device`) load its CUDA part on each GPU, all at once, and waits for
// them. Returns a status for each: Unavailable with what the Rank said, such as that the driver is
// too old; DeadlineExceeded where one takes longer than `patience`, and is killed.
// Threads: any; the processes die with the calling one.
std::vector<absl::Status> CheckGpus(const std::string& trainrank, const std::vector<Slot>& gpus,
                                    absl::Duration patience);

}  // namespace traind::worker
