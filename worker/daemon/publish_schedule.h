// Decides when this Worker must publish a Job's Prediction without traind, and keeps what that
// needs.
#pragma once

#include <absl/time/time.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/publish/prediction.h"
#include "worker/daemon/task.h"

namespace traind::worker {

// The Jobs that Attempts here have worked for, with the predictions they saved.
// traind publishes as long as it is there; without it, Due() names what to
// publish: each Job with something new, and once more shortly before its deadline
// if traind has not taken all of it by then.
// Threads: confined to the event loop's.
class PublishSchedule {
 public:
  struct Options {
    // traind may be back within this: then it publishes.
    absl::Duration patience = absl::Milliseconds(500);
    // Time to publish in, before the deadline.
    absl::Duration last_call = absl::Milliseconds(300);
    // Forgotten so long after the last news of a Job with no deadline to come.
    absl::Duration keep = absl::Minutes(10);
  };
  explicit PublishSchedule(Options options) : options_(options) {}

  void Started(const TaskStart& task, absl::Duration now);
  void Replanned(const std::string& job, bool plan_cut, std::optional<absl::Duration> deadline_at);
  void TableRead(const std::string& job, const rank_protocol::TableReady& table,
                 absl::Duration now);
  void FloorSaved(const std::string& job, absl::Duration now);
  void FoldSaved(const TaskStart& task, const rank_protocol::FoldSaved& fold, absl::Duration now);

  void Connected();
  void Disconnected(absl::Duration now);

  // Returns the Jobs to publish now, each at most once until its Published(). unacked: traind owes
  // the Ack of a fact.
  std::vector<PublishRequest> Due(absl::Duration now, bool unacked);
  void Published(const std::string& job, bool ok, absl::Duration now);
  absl::Duration NextWakeup() const;
  bool busy() const { return running_ > 0; }

 private:
  struct PublishableJob {
    PublishRequest request;
    std::map<std::tuple<int, int, int>, Member> members;  // by fold, trial and seed
    absl::Duration deadline_at = absl::InfiniteDuration();
    absl::Duration news_at;
    bool fresh = false;      // has what was never published from here
    bool last_call = false;  // made
    bool running = false;
    absl::Duration not_before;  // after a failure
  };
  PublishableJob* Find(const std::string& job);
  absl::Duration DueAt(const PublishableJob& job) const;

  Options options_;
  std::map<std::string, PublishableJob> jobs_;
  int running_ = 0;
  // When traind was lost; none while it is there.
  std::optional<absl::Duration> lost_at_ = absl::ZeroDuration();
};

}  // namespace traind::worker
