// The trials of a Job that searches.
#pragma once

#include <absl/status/status.h>

#include <string>
#include <vector>

#include "proto/job.pb.h"
#include "server/domain/job.h"

namespace traind {

// Fills in the search of a Job and its trials, of which the first has the spec's own settings.
// asked: the spec as the user wrote it; a warning tells what it leaves out.
// REQUIRES: `to` has the one trial that the spec is without its search.
absl::Status FillSearch(const v1::JobSpec& asked, const v1::JobSpec& resolved, Spec& to,
                        std::vector<std::string>* warnings);

// Gives the trials of a Job that goes on from another one the settings that they have there.
void TakeDrawnTrials(const Spec& source, Spec& to);

}  // namespace traind
