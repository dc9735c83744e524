// The life of a Rank: Ready, a task, Ready again.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "worker/inference/inference_control.h"
#include "worker/rank/reporter.h"
#include "worker/rank_protocol/line_channel.h"
#include "worker/rank_protocol/messages.h"
#include "worker/train/task_control.h"

namespace traind {

// One thread trains or predicts (Run's), another reads commands (ReadCommands'), so that Stop and
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
  // One of the controls is there: which says what kind of task it is.
  struct Task {
    int64_t attempt = 0;
    std::string what;                    // for the log
    std::function<absl::Status()> work;  // on Run's thread
    std::shared_ptr<TaskControl> training;
    std::shared_ptr<InferenceControl> inference;
  };

  void SayReady(const std::string& device);
  std::optional<Task> NextTask();
  void RunTask(const Task& task);
  void Add(Task task);

  void Handle(const rank_protocol::ToProcess& message);
  void Take(const rank_protocol::Train& train);
  void Take(const rank_protocol::Predict& predict);
  void Take(const rank_protocol::Serve& serve);
  void Take(const rank_protocol::Rows& rows);
  void Take(const rank_protocol::Exit& exit);
  template <class Order>
  void PassOn(const Order& order, const char* name);
  // A task that runs or waits; without a control: there is none.
  Task Find(int64_t attempt);

  rank_protocol::LineChannel& channel_;
  Reporter& reporter_;
  const Clock& clock_;

  absl::Mutex mutex_;
  std::deque<Task> waiting_ ABSL_GUARDED_BY(mutex_);
  std::optional<Task> running_ ABSL_GUARDED_BY(mutex_);
  bool exiting_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace traind
