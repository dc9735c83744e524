// The trials of a Job that searches: which settings each of them has.
//
// Trial 0 has the spec's own. Settings that depend on nothing but the seed are drawn when the Job
// is accepted: random, grid, asha. Those of tpe are drawn when a trial begins, from the trials
// before. Settings never change once they are drawn.
//
// Threads: safe, nothing is kept. Equal arguments give equal settings.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <vector>

#include "server/domain/job.h"
#include "server/plan/trials.h"
#include "server/search/tpe.h"

namespace traind {

// Draws the settings that depend on the seed alone. Trials that a small space has no points for are
// left out; more of them begin with those of fewer. Settings that a trial has already stay.
// REQUIRES: the Job searches, and trial 0 has its settings.
// Errors: InvalidArgument: the space cannot be read.
absl::Status DrawAtAcceptance(Spec& spec);

// Returns the settings of a trial that is about to begin, from what the others have shown; null:
// the space has no other point.
// planned: the trials that the time suffices for; half of them, at most 10, are drawn at random.
std::shared_ptr<const Settings> DrawNext(const Spec& spec, int trial, const TrialsInput& shown,
                                         int planned);

// Gives a trial its settings, with the epochs and the patience that follow from them.
void TakeSettings(std::shared_ptr<const Settings> settings, Trial& trial);

// The refusal of a proposal to a Job that does not ask clients for its trials.
absl::Status NoProposals(const std::string& job);

// The trials of a Job that have settings, with what their trained folds have shown.
std::vector<Tried> TriedBy(const Job& job);

// Whether trials stop at rungs: of those with as many folds, only the best go on.
bool HasRungs(const Search& search);

}  // namespace traind
