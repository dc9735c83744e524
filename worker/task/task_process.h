// The life of a process that trains and predicts for a Worker: Ready, a task, Ready again.
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
#include "common/base/timed_wait.h"
#include "worker/rank_protocol/line_channel.h"
#include "worker/rank_protocol/messages.h"
#include "worker/task/engine.h"
#include "worker/task/inference_control.h"
#include "worker/task/reporter.h"
#include "worker/task/task_control.h"

namespace traind {

// Reads the Worker's lines and gives each task to the Engine; says Ready, Finished and Failed.
// Threads: one runs tasks (Run's), another reads commands (ReadCommands'), so that Stop and the
// end of input are heard at once.
// Errors: a task's become Failed messages; a broken channel ends the process.
class TaskProcess {
 public:
  // References outlive it.
  TaskProcess(rank_protocol::LineChannel& channel, Reporter& reporter, const Clock& clock,
              Engine& engine, absl::Duration release_after)
      : channel_(channel),
        reporter_(reporter),
        clock_(clock),
        engine_(engine),
        release_after_(release_after) {}

  // Takes task after task until Exit. device: for Ready.
  void Run(const std::string& device);

  // Never returns: the end of input ends the process, whatever it is doing.
  [[noreturn]] void ReadCommands();

 private:
  // One of the controls is set: which one tells the kind of task.
  struct Task {
    int64_t attempt = 0;
    std::string what;                    // for the log
    std::function<absl::Status()> work;  // on Run's thread
    std::shared_ptr<TaskControl> training;
    std::shared_ptr<InferenceControl> inference;
  };

  void SendReady(const std::string& device);
  std::optional<Task> NextTask();
  void RunTask(const Task& task);
  void Add(Task task);

  void Handle(const rank_protocol::ToProcess& message);
  void Accept(const rank_protocol::Train& train);
  void Accept(const rank_protocol::Predict& predict);
  void Accept(const rank_protocol::Serve& serve);
  void Accept(const rank_protocol::Prepare& prepare);
  void Accept(const rank_protocol::Rows& rows);
  void Accept(const rank_protocol::Replan& replan);
  void Accept(const rank_protocol::Stop& stop);
  void Accept(const rank_protocol::Exit& exit);
  template <class Order>
  void PassOn(const Order& order, const char* name);
  // A task that runs or waits; one without a control where there is none.
  Task Find(int64_t attempt);

  rank_protocol::LineChannel& channel_;
  Reporter& reporter_;
  const Clock& clock_;
  Engine& engine_;
  const absl::Duration release_after_;

  absl::Mutex mutex_;
  TimedCondVar changed_;  // after a change of waiting_ or exiting_
  std::deque<Task> waiting_ ABSL_GUARDED_BY(mutex_);
  std::optional<Task> running_ ABSL_GUARDED_BY(mutex_);
  bool exiting_ ABSL_GUARDED_BY(mutex_) = false;
};

// main() of such a program: dies with the Worker, keeps the protocol away from what libraries
// print, and runs tasks until the Worker says Exit. start: gets the engine ready on the task
// thread (commands are heard meanwhile) and returns the device's name for Ready; its error ends
// the process. release_after: how long it waits for the next task before freed memory goes back to
// the system; the next fold of the same Job comes sooner and needs that memory. Returns only where
// the process cannot begin to work.
int RunTaskProcess(Engine& engine, const std::function<absl::StatusOr<std::string>()>& start,
                   absl::Duration release_after = absl::Seconds(5));

}  // namespace traind
