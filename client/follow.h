// Shows a Job while it is followed to its end.
#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <memory>
#include <string>

#include "client/arguments.h"
#include "client/environment.h"
#include "client/job_follower.h"
#include "client/training_client.h"
#include "proto/job.pb.h"

namespace traind {

// Makes the view: on a terminal, bars that are redrawn; else a line every 10 s and at each change
// of a state; without progress only notes. Each Decision is shown once, and each answer that other
// trials join or that scores better. verbose: Decisions with their arithmetic.
std::unique_ptr<FollowView> MakeFollowView(Environment& environment, bool progress, bool verbose);

struct FollowResult {
  enum class End { kTerminal, kDetached, kTimedOut, kError };
  End end = End::kError;
  v1::Job job;          // last seen
  absl::Status status;  // for kError
};

// job: its present state. limit: infinite if there is none. Ends early when environment.interrupted
// is set.
FollowResult FollowJob(TrainingClient& client, v1::Job job, absl::Duration limit,
                       Environment& environment, FollowView& view);

// The common end of submit --wait, submit --follow and watch. Follows the Job, then prints the
// summary (stdout), or the Job as JSON, or how to come back; copies final predictions to `output`
// if that is set, and the files that traind keeps of its program to the folder `results_to`.
// Returns the exit code.
int FollowToTheEnd(const Arguments& arguments, Environment& environment, TrainingClient& client,
                   v1::Job job, const std::string& output, bool show_progress,
                   const std::string& results_to = "");

}  // namespace traind
