// Follows one Job by the stream of its changes, through restarts of traind.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "client/environment.h"
#include "client/exit_codes.h"
#include "client/training_client.h"
#include "common/base/clock.h"
#include "proto/job.pb.h"

namespace traind {

// The time between two looks at the clock and at Ctrl-C while a Job is followed.
inline constexpr absl::Duration kFollowTick = absl::Milliseconds(100);

bool HasEnded(const v1::Job& job);

// Returns the exit code for the end of a Job. REQUIRES: it has ended.
ExitCode ExitCodeOfEnd(const v1::Job& job);

// Shows a Job while it is followed. Writes to stderr only.
// Threads: confined to one.
class FollowView {
 public:
  virtual ~FollowView() = default;
  virtual void OnJob(const v1::Job& job) = 0;
  // Called about ten times a second.
  virtual void OnTick() = 0;
  // Prints a line that stays on the screen.
  virtual void Note(const std::string& line) = 0;
  // Called when the connection is lost, and when it is back.
  virtual void OnLost(const absl::Status& status);
  virtual void OnConnectedAgain() { Note("connected again"); }
  // Leaves the cursor on a line of its own.
  virtual void Close() = 0;
};

// Threads: confined to one. The client, the clock and the view outlive it.
class JobFollower {
 public:
  // job: its present state. until: on the monotonic clock; no call to traind lasts longer.
  JobFollower(TrainingClient& client, v1::Job job, absl::Duration until, const Clock& clock,
              FollowView& view)
      : client_(client), job_(std::move(job)), until_(until), clock_(clock), view_(view) {}

  // Waits for one message of the stream, for at most `tick`; tells the view of a change, of a lost
  // connection, and of its return. Errors: those of traind that a retry cannot cure.
  absl::Status Step(absl::Duration tick);
  // Returns the Job as it was last seen.
  const v1::Job& job() const { return job_; }

 private:
  absl::Duration Now() const { return clock_.MonotonicNow(); }
  void Take(v1::Job job);
  absl::Status Lose(absl::Status status);

  TrainingClient& client_;
  v1::Job job_;
  const absl::Duration until_;
  const Clock& clock_;
  FollowView& view_;
  std::unique_ptr<JobWatch> watch_;
  absl::Duration heard_;
  absl::Duration next_try_;
  bool lost_ = false;
  Backoff backoff_;
};

// Returns the Job once traind answers, which may take up to `timeout`, or 5 minutes if there is
// none: the address of a traind that does not answer may be wrong.
// Errors: Unavailable: it did not answer in time; those of GetJob.
absl::StatusOr<v1::Job> FindJobToFollow(TrainingClient& client, const std::string& id_or_name,
                                        std::optional<absl::Duration> timeout,
                                        Environment& environment);

}  // namespace traind
