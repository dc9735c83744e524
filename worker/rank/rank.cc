#include "worker/rank/rank.h"

#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <type_traits>
#include <utility>
#include <variant>

#include "common/base/engine_version.h"
#include "common/base/log.h"
#include "worker/device/guard.h"
#include "worker/inference/dataset_prediction.h"
#include "worker/inference/row_server.h"
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
  running_.reset();
  const auto something = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return exiting_ || !waiting_.empty();
  };
  mutex_.Await(absl::Condition(&something));
  if (exiting_) return std::nullopt;
  running_ = std::move(waiting_.front());
  waiting_.pop_front();
  return running_;
}

void Rank::RunTask(const Task& task) {
  TRAIND_LOG(INFO) << "attempt " << task.attempt << ": " << task.what;
  const absl::Status status = Guarded([&] { return task.work(); });
  if (status.ok()) {
    rank_protocol::Finished finished;
    finished.attempt = task.attempt;
    reporter_.Send(finished);
    return;
  }
  TRAIND_LOG(ERROR) << "attempt " << task.attempt << ": " << status.ToString();
  rank_protocol::Failed failed;
  failed.attempt = task.attempt;
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
          failed.reason = AttemptEndReason::kInternal;
          failed.message = "trainrank trains and predicts; trainprep prepares";
          reporter_.Send(failed);
        } else {
          Take(m);
        }
      },
      message);
}

void Rank::Add(Task task) {
  absl::MutexLock lock(&mutex_);
  waiting_.push_back(std::move(task));
}

void Rank::Take(const rank_protocol::Train& train) {
  Task task;
  task.attempt = train.attempt;
  task.what = absl::StrCat("job ", train.job, " fold ", train.fold, " rank ", train.rank, " of ",
                           train.world_size);
  task.training = std::make_shared<TaskControl>(train, clock_);  // its clock starts here
  task.work = [this, train, control = task.training] {
    return Trainer(train, *control, reporter_, clock_).Run();
  };
  Add(std::move(task));
}

void Rank::Take(const rank_protocol::Predict& predict) {
  Task task;
  task.attempt = predict.attempt;
  task.what = absl::StrCat("job ", predict.job, ": predict a file");
  task.inference =
      std::make_shared<InferenceControl>(predict.attempt, predict.remaining_ms, clock_);
  task.work = [this, predict, control = task.inference] {
    return DatasetPrediction(predict, *control, reporter_, clock_).Run();
  };
  Add(std::move(task));
}

void Rank::Take(const rank_protocol::Serve& serve) {
  Task task;
  task.attempt = serve.attempt;
  task.what = absl::StrCat("job ", serve.job, ": serve rows");
  task.inference = std::make_shared<InferenceControl>(serve.attempt, serve.remaining_ms, clock_);
  task.work = [this, serve, control = task.inference] {
    return RowServer(serve, *control, reporter_, clock_).Run();
  };
  Add(std::move(task));
}

void Rank::Take(const rank_protocol::Rows& rows) {
  const Task task = Find(rows.attempt);
  if (task.inference != nullptr) return task.inference->Push(rows);
  rank_protocol::Answered answer;
  answer.attempt = rows.attempt;
  answer.request = rows.request;
  answer.code = absl::StrCat(static_cast<int>(absl::StatusCode::kUnavailable));
  answer.message = "the models are not held here any more";
  reporter_.Send(answer);
}

void Rank::Take(const rank_protocol::Exit&) {
  {
    absl::MutexLock lock(&mutex_);
    exiting_ = true;
    if (!running_.has_value()) return;
  }
  // In the middle of a task: what it has on disk is what counts.
  reporter_.Drain(absl::Seconds(1));
  _exit(0);
}

// Orders for a task that has just ended cross its Finished on the way: no error.
template <class Order>
void Rank::PassOn(const Order& order, const char* name) {
  const Task task = Find(order.attempt);
  if (task.training != nullptr) return task.training->Apply(order);
  if (task.inference != nullptr) return task.inference->Apply(order);
  TRAIND_LOG(INFO) << name << " for attempt " << order.attempt << ", which does not run here";
}

Rank::Task Rank::Find(int64_t attempt) {
  absl::MutexLock lock(&mutex_);
  if (running_.has_value() && running_->attempt == attempt) return *running_;
  for (const Task& task : waiting_) {
    if (task.attempt == attempt) return task;
  }
  return Task();
}

}  // namespace traind
