// Settings that clients propose for trials of a Job.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <string>

#include "server/domain/job.h"

namespace traind {

// Returns the settings of a proposal by the paths of the Job's space. Fields that it leaves out
// have the value of trial 0. asked: values by path, or by the shorter name that the Job's trials
// show ("num_leaves"). Errors: InvalidArgument names each setting that is not of the space, has no
// value of its range, or that the spec cannot have. Threads: safe.
absl::StatusOr<Settings> ReadProposal(const Job& job,
                                      const std::map<std::string, std::string>& asked);

}  // namespace traind
