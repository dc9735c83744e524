#include "worker/rank/rank.h"

#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <type_traits>
#include <utility>
#include <variant>

#include "common/log.h"
#include "worker/device/guard.h"
#include "worker/train/failure.h"
#include "worker/train/trainer.h"

namespace traind {

void Rank::Run(const std::string& device) {
  SayReady(device);
  while (std::optional<Task> task = NextTask()) {
    RunTask(*task);
    SayReady(device);
  }
}

void Rank::SayReady(const std::string& device) {
  rank_protocol::Ready ready;
  ready.pid = getpid();
  ready.engine = kEngineVersion;
  ready.device = device;
  reporter_.Send(ready);
  reporter_.Drain(absl::InfiniteDuration());  // nothing else would send what is left
}

std::optional<Rank::Task> Rank::NextTask() {
  absl::MutexLock lock(&mutex_);
  running_ = nullptr;
  const auto something = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return exiting_ || !waiting_.empty();
  };
  mutex_.Await(absl::Condition(&something));
  if (exiting_) return std::nullopt;
  Task task = std::move(waiting_.front());
  waiting_.pop_front();
  running_ = task.control;
  return task;
}

void Rank::RunTask(Task& task) {
  const int64_t attempt = task.train.attempt;
  TRAIND_LOG(INFO) << "attempt " << attempt << ": job " << task.train.job << " fold "
                   << task.train.fold << " rank " << task.train.rank << " of "
                   << task.train.world_size;
  const absl::Status status = Guarded([&] {
    Trainer trainer(task.train, *task.control, reporter_, clock_);
    return trainer.Run();
  });
  if (status.ok()) {
    rank_protocol::Finished finished;
    finished.attempt = attempt;
    reporter_.Send(finished);
    return;
  }
  TRAIND_LOG(ERROR) << "attempt " << attempt << ": " << status.ToString();
  rank_protocol::Failed failed;
  failed.attempt = attempt;
  failed.reason = FailureReason(status);
  failed.message = std::string(status.message());
  reporter_.Send(failed);
}

void Rank::ReadCommands() {
  while (true) {
    const absl::StatusOr<std::string> line = channel_.ReadLine(absl::InfiniteDuration());
    if (!line.ok()) {
      if (!absl::IsOutOfRange(line.status())) {
        TRAIND_LOG(ERROR) << "reading commands: " << line.status().ToString();
      }
      _exit(0);  // the Worker is gone: at once, whatever the other threads do
    }
    if (line->empty()) continue;
    const absl::StatusOr<rank_protocol::ToProcess> message = rank_protocol::DecodeToProcess(*line);
    if (message.ok()) {
      Handle(*message);
    } else {
      reporter_.Send(rank_protocol::LogText{
          "error", absl::StrCat("not understood: ", message.status().message())});
    }
  }
}

void Rank::Handle(const rank_protocol::ToProcess& message) {
  std::visit(
      [this](const auto& m) {
        using M = std::decay_t<decltype(m)>;
        if constexpr (std::is_same_v<M, rank_protocol::Replan>) {
          PassOn(m, "replan");
        } else if constexpr (std::is_same_v<M, rank_protocol::Stop>) {
          PassOn(m, "stop");
        } else if constexpr (std::is_same_v<M, rank_protocol::Prepare>) {
          rank_protocol::Failed failed;
          failed.attempt = m.attempt;
          failed.reason = "INTERNAL";
          failed.message = "trainrank trains; trainprep prepares";
          reporter_.Send(failed);
        } else {
          Take(m);
        }
      },
      message);
}

void Rank::Take(rank_protocol::Train train) {
  Task task;
  task.control = std::make_shared<TaskControl>(train, clock_);  // its clock starts here
  task.train = std::move(train);
  absl::MutexLock lock(&mutex_);
  waiting_.push_back(std::move(task));
}

void Rank::Take(const rank_protocol::Exit&) {
  {
    absl::MutexLock lock(&mutex_);
    exiting_ = true;
    if (running_ == nullptr) return;
  }
  // In the middle of a task: what it has on disk is what counts.
  reporter_.Drain(absl::Seconds(1));
  _exit(0);
}

// Orders for a task that has just ended cross its Finished on the way: no error.
template <class Order>
void Rank::PassOn(const Order& order, const char* name) {
  const std::shared_ptr<TaskControl> control = ControlOf(order.attempt);
  if (control == nullptr) {
    TRAIND_LOG(INFO) << name << " for attempt " << order.attempt << ", which does not run here";
    return;
  }
  control->Apply(order);
}

std::shared_ptr<TaskControl> Rank::ControlOf(int64_t attempt) {
  absl::MutexLock lock(&mutex_);
  if (running_ != nullptr && running_->attempt() == attempt) return running_;
  for (const Task& task : waiting_) {
    if (task.control->attempt() == attempt) return task.control;
  }
  return nullptr;
}

}  // namespace traind
