#include "worker/task/task_process.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <thread>
#include <utility>
#include <variant>

#include "common/base/data_roots.h"
#include "common/base/engine_version.h"
#include "common/base/job_layout.h"
#include "common/base/log.h"
#include "worker/task/failure.h"
#include "worker/task/fold_trainer.h"

namespace traind {
namespace {

// Such a process must not outlive its Worker: the kernel sees to it, from here on.
bool DieWithParent() {
  const pid_t parent = getppid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  return getppid() == parent;  // else it died before that line
}

// Moves one of the protocol's descriptors away from 0 and 1: whatever a library prints goes to
// the log.
int KeepAway(int fd, int replacement) {
  const int kept = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  dup2(replacement, fd);
  return kept;
}

}  // namespace

void TaskProcess::Run(const std::string& device) {
  SendReady(device);
  while (std::optional<Task> task = NextTask()) {
    RunTask(*task);
    SendReady(device);
  }
}

void TaskProcess::SendReady(const std::string& device) {
  rank_protocol::Ready ready;
  ready.pid = getpid();
  ready.engine = kEngineVersion;
  ready.device = device;
  reporter_.Send(ready);
  reporter_.Drain(absl::InfiniteDuration());  // nothing else would send what is left
}

std::optional<TaskProcess::Task> TaskProcess::NextTask() {
  const auto something = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return exiting_ || !waiting_.empty();
  };
  bool idle = false;
  {
    absl::MutexLock lock(&mutex_);
    running_.reset();
    idle = !changed_.Await(mutex_, release_after_, something);
  }
  if (idle) engine_.ReleaseMemory();
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&something));
  if (exiting_) return std::nullopt;
  running_ = std::move(waiting_.front());
  waiting_.pop_front();
  return running_;
}

void TaskProcess::RunTask(const Task& task) {
  TRAIND_LOG(INFO) << "attempt " << task.attempt << ": " << task.what;
  const absl::Status status = engine_.Guard(task.work);
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

void TaskProcess::ReadCommands() {
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

void TaskProcess::Handle(const rank_protocol::ToProcess& message) {
  std::visit([this](const auto& m) { Accept(m); }, message);
}

void TaskProcess::Add(Task task) {
  absl::MutexLock lock(&mutex_);
  waiting_.push_back(std::move(task));
  changed_.NotifyAll();
}

void TaskProcess::Accept(const rank_protocol::Train& train) {
  Task task;
  task.attempt = train.attempt;
  task.what = absl::StrCat("job ", train.job, " fold ", train.fold, " rank ", train.rank, " of ",
                           train.world_size);
  task.training = std::make_shared<TaskControl>(train, clock_);  // its clock starts here
  task.work = [this, train, control = task.training] {
    return TrainFold(*engine_.NewTrainer(train, *control, reporter_, clock_));
  };
  Add(std::move(task));
}

void TaskProcess::Accept(const rank_protocol::Predict& predict) {
  KeepToDataRoots(predict.data_roots, {absl::StrCat(predict.state_dir, "/jobs"),
                                       absl::StrCat(predict.state_dir, "/", CacheDir())});
  Task task;
  task.attempt = predict.attempt;
  task.what = absl::StrCat("job ", predict.job, ": predict a file");
  task.inference =
      std::make_shared<InferenceControl>(predict.attempt, predict.remaining_ms, clock_);
  task.work = [this, predict, control = task.inference] {
    return engine_.Predict(predict, *control, reporter_, clock_);
  };
  Add(std::move(task));
}

void TaskProcess::Accept(const rank_protocol::Serve& serve) {
  Task task;
  task.attempt = serve.attempt;
  task.what = absl::StrCat("job ", serve.job, ": serve rows");
  task.inference = std::make_shared<InferenceControl>(serve.attempt, serve.remaining_ms, clock_);
  task.work = [this, serve, control = task.inference] {
    return engine_.Serve(serve, *control, reporter_, clock_);
  };
  Add(std::move(task));
}

void TaskProcess::Accept(const rank_protocol::Prepare& prepare) {
  rank_protocol::Failed failed;
  failed.attempt = prepare.attempt;
  failed.reason = AttemptEndReason::kInternal;
  failed.message = "this program trains and predicts; trainprep prepares";
  reporter_.Send(failed);
}

void TaskProcess::Accept(const rank_protocol::Rows& rows) {
  const Task task = Find(rows.attempt);
  if (task.inference != nullptr) return task.inference->Push(rows);
  rank_protocol::Answered answer;
  answer.attempt = rows.attempt;
  answer.request = rows.request;
  answer.code = absl::StrCat(static_cast<int>(absl::StatusCode::kUnavailable));
  answer.message = "the models are not held here any more";
  reporter_.Send(answer);
}

void TaskProcess::Accept(const rank_protocol::Replan& replan) { PassOn(replan, "replan"); }

void TaskProcess::Accept(const rank_protocol::Stop& stop) { PassOn(stop, "stop"); }

void TaskProcess::Accept(const rank_protocol::Exit&) {
  {
    absl::MutexLock lock(&mutex_);
    exiting_ = true;
    changed_.NotifyAll();
    if (!running_.has_value()) return;
  }
  // In the middle of a task: what it has on disk is what counts.
  reporter_.Drain(absl::Seconds(1));
  _exit(0);
}

// An order for a task that has just ended crosses its Finished on the way: that is no error.
template <class Order>
void TaskProcess::PassOn(const Order& order, const char* name) {
  const Task task = Find(order.attempt);
  if (task.training != nullptr) return task.training->Apply(order);
  if (task.inference != nullptr) return task.inference->Apply(order);
  TRAIND_LOG(INFO) << name << " for attempt " << order.attempt << ", which does not run here";
}

TaskProcess::Task TaskProcess::Find(int64_t attempt) {
  absl::MutexLock lock(&mutex_);
  if (running_.has_value() && running_->attempt == attempt) return *running_;
  for (const Task& task : waiting_) {
    if (task.attempt == attempt) return task;
  }
  return Task();
}

int RunTaskProcess(Engine& engine, const std::function<absl::StatusOr<std::string>()>& start,
                   absl::Duration release_after) {
  if (!DieWithParent()) return 1;
  signal(SIGPIPE, SIG_IGN);
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  rank_protocol::LineChannel channel(KeepAway(STDIN_FILENO, null),
                                     KeepAway(STDOUT_FILENO, STDERR_FILENO));
  const Clock& clock = SystemClock();
  Reporter reporter(channel, clock);
  TaskProcess process(channel, reporter, clock, engine, release_after);
  std::thread([&process] { process.ReadCommands(); }).detach();
  const absl::StatusOr<std::string> device = start();
  if (!device.ok()) {
    TRAIND_LOG(ERROR) << device.status().ToString();
    // Not through destructors: the reading thread still uses what they would destroy.
    std::fflush(nullptr);
    _exit(1);
  }
  process.Run(*device);
  reporter.Drain(absl::Seconds(1));
  std::fflush(nullptr);
  _exit(0);
}

}  // namespace traind
