// The life of a Rank: Ready, a task, Ready again.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "common/clock.h"
#include "worker/rank/reporter.h"
#include "worker/rank_protocol/line_channel.h"
#include "worker/rank_protocol/messages.h"
#include "worker/train/task_control.h"

namespace traind {

// Part of cache keys: changes whenever the same spec and data would train otherwise.
inline constexpr char kEngineVersion[] = "1";

// One thread trains (Run's), another reads commands (ReadCommands'), so that Stop and
// the end of input are heard at once.
// Threads: as said.
class Rank {
 public:
  // References outlive it.
  Rank(rank_protocol::LineChannel& channel, Reporter& reporter, const Clock& clock)
      : channel_(channel), reporter_(reporter), clock_(clock) {}

  // Until Exit. device: for Ready.
  void Run(const std::string& device);

  // Never returns: the end of input ends the process, whatever it is doing.
  [[noreturn]] void ReadCommands();

 private:
  struct Task {
    rank_protocol::Train train;
    std::shared_ptr<TaskControl> control;
  };

  void SayReady(const std::string& device);
  std::optional<Task> NextTask();
  void RunTask(Task& task);

  void Handle(const rank_protocol::ToProcess& message);
  void Take(rank_protocol::Train train);
  void Take(const rank_protocol::Exit& exit);
  template <class Order>
  void PassOn(const Order& order, const char* name);
  std::shared_ptr<TaskControl> ControlOf(int64_t attempt);

  rank_protocol::LineChannel& channel_;
  Reporter& reporter_;
  const Clock& clock_;

  absl::Mutex mutex_;
  std::deque<Task> waiting_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<TaskControl> running_ ABSL_GUARDED_BY(mutex_);
  bool exiting_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace traind
