// The trials of a Job as people read them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "proto/job.pb.h"
#include "server/domain/job.h"

namespace traind {

// Returns the trials of a Job, with the settings that tell them apart. Empty: there is one setting,
// or the spec cannot be read. Threads: safe.
std::vector<v1::Trial> TrialsOf(const Job& job);

// What a Job that searches varies, and what it has shown. Unset: the Job does not search.
std::optional<v1::Search> SearchOf(const Job& job);

// The spec that a Worker gets for a trial: of a search it has the trial's settings.
std::string SpecForTrial(const Job& job, int trial);

}  // namespace traind
