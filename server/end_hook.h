// Runs a program of the operator whenever a Job has ended (--on-end).
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <thread>

#include "server/http/json_api.h"
#include "server/loop/views.h"
#include "server/store/store.h"

namespace traind {

// The program gets the Job's id, its state and the path of a file with the Job as JSON. The
// programs of all Jobs run one after the other. One that does not end with 0 within 30 s is killed
// with its children, and tried twice more. A Job's end is told at least once, also over a crash of
// traind: a file in the Job's folder marks that it was. Jobs that ended before traind was first
// started with a program are not told.
//
// Threads: one of its own; the constructor, Start and Stop are called by one. Ownership: what it
// is given outlives it.
class EndHook {
 public:
  // program: an absolute path; empty: there is none, and what ends is not told later either.
  EndHook(std::string state_dir, std::string program, const JobViews* views, Store* store,
          TrainingCalls* calls);
  ~EndHook() { Stop(); }

  // Errors: of the state folder.
  absl::Status Start();
  // Ends the program that runs; its Job is told again after the next start.
  void Stop();

 private:
  void Run();
  // Queues the Jobs that ended while no traind was there to tell.
  void CollectStored();
  void CollectEnded();
  void Tell(const std::string& id);
  bool IsTold(const std::string& id) const;
  absl::Status RunOnce(const std::string& job, const std::string& file);
  // Waits, and goes on collecting. False: it is to stop.
  bool Sleep(absl::Duration time);

  const std::string state_dir_, program_;
  const JobViews* const views_;
  Store* const store_;
  const JsonApi api_;
  absl::Time since_ = absl::InfinitePast();  // Jobs that ended earlier are not told
  uint64_t seen_ = 0;                        // of the views' changes
  std::deque<std::string> ended_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace traind
