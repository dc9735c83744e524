// The control core: all decisions of the coordinator, as a function of what it
// knows, what happened, and the time. No I/O, no threads, no clock, no chance:
// the same Steps give the same Turns, in the daemon and under simulation.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/time/time.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/control/events.h"
#include "server/store/store.h"

namespace traind {

struct CoreOptions {
  // A Worker not heard of for so long has lost its Attempts.
  absl::Duration lease = absl::Seconds(15);
  // One Worker on this machine: a silent one is not replaced, only a dead one.
  bool standalone = false;
  int max_active_jobs = 100'000;  // Submit beyond it is ResourceExhausted
  // Attempts of a task that may fail by its own fault; losses of Ranks or Workers
  // do not count, but stop at max_losses in a row without progress.
  int max_failures = 3;
  int max_losses = 10;
  // Jobs of one owner that are not over, and slots that their folds use at a time; 0: no limit.
  int max_owner_jobs = 0;
  int max_owner_slots = 0;
  // PREPAREs sent to one Worker and not ended; a Job due within a minute does not
  // wait for one of them to end.
  int max_prepares = 64;
  // After so long, half of what an owner's folds have used no longer counts against it.
  absl::Duration share_half_life = absl::Hours(24 * 7);
  // A Job of which nothing runs, and that waits for so long, stops folds of lower priorities,
  // unless it would have slots within as long again. Infinite: nobody is stopped for another.
  absl::Duration preempt_after = absl::Seconds(10);
  // A fold runs for so long before it is stopped for another, and not again so soon after that.
  absl::Duration preempt_least_run = absl::Seconds(30);
  absl::Duration preempt_pause = absl::Minutes(5);
  // One that has not gone by then is killed.
  absl::Duration preempt_grace = absl::Seconds(15);
  // Before the deadline, the last moment at which the final Prediction is begun
  // when its cost is not known yet.
  absl::Duration finalize_margin = absl::Milliseconds(400);
};

// Threads: confined to the control loop's.
class ControlCore {
 public:
  explicit ControlCore(CoreOptions options);
  ~ControlCore();

  // Takes over what the store knows; before the first Step. Running Attempts stay
  // running: their Workers are expected back within a lease.
  void Restore(Snapshot snapshot, absl::Time now);

  // Events in order, then whatever the time asks for. `now` never goes back. A
  // Step without events at next_wakeup does what is due.
  Turn Step(std::vector<Event> events, absl::Time now);

  // The Jobs that are not terminal.
  bool HasJob(const std::string& id) const;
  std::shared_ptr<const Job> FindJob(const std::string& id) const;
  std::vector<std::shared_ptr<const Job>> ActiveJobs() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace traind
