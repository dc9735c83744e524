// A Worker's WorkerCore with Ranks and prepares by a test's word, under a simulated clock.
// Threads: confined to one.
#pragma once

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "worker/daemon/worker_core.h"

namespace traind::worker {

namespace rp = rank_protocol;

template <class M>
M About(int64_t attempt) {
  M message;
  message.attempt = attempt;
  return message;
}

class CoreTest : public ::testing::Test {
 protected:
  explicit CoreTest(std::vector<Slot> slots = {{"cpu", "a", "", 1}, {"cpu", "a", "", 1}}) {
    options_.state_dir = "/state";
    options_.cores = 2;
    options_.warm_spares = false;
    slots_ = std::move(slots);
    Make();
  }
  void Make() {
    core_ = std::make_unique<WorkerCore>(
        options_, slots_, [this] { return available_; }, [] { return 4711; });
  }

  TaskStart Train(int64_t attempt, std::vector<int> slots = {0}) {
    TaskStart task;
    task.attempt = attempt;
    task.job = "job-1";
    task.kind = TaskKind::kTrain;
    task.slots = std::move(slots);
    task.world_size = static_cast<int>(task.slots.size());
    task.table = "cache/t.table";
    task.metric = "accuracy";
    task.spec_folds = 5;
    task.epochs = 10;
    return task;
  }
  TaskStart Prepare(int64_t attempt, absl::Duration deadline_at) {
    TaskStart task;
    task.attempt = attempt;
    task.job = absl::StrCat("job-", attempt);
    task.kind = TaskKind::kPrepare;
    task.deadline_at = deadline_at;
    task.metric = "accuracy";
    task.spec_folds = 5;
    return task;
  }

  // Takes the actions in; what was started lives, what was killed is dying.
  void Collect() {
    for (Action& action : core_->TakeActions()) {
      if (const auto* spawn = std::get_if<SpawnAction>(&action)) spawned_.push_back(*spawn);
      if (const auto* kill = std::get_if<KillAction>(&action)) killed_.insert(kill->process);
      if (auto* send = std::get_if<SendAction>(&action)) sent_.push_back(std::move(*send));
      if (auto* log = std::get_if<LogFileAction>(&action)) {
        logs_[log->process] = log->path;
      }
      if (auto* line = std::get_if<LogAction>(&action)) lines_.push_back(std::move(line->text));
      if (auto* answer = std::get_if<AnswerAction>(&action)) {
        answers_.push_back(std::move(answer->answer));
      }
      if (const auto* ready = std::get_if<GangReadyAction>(&action)) gangs_ready_.push_back(*ready);
      if (auto* report = std::get_if<ReportAction>(&action)) reports_.push_back(std::move(*report));
      if (auto* publish = std::get_if<PublishAction>(&action)) {
        publishes_.push_back(std::move(publish->request));
      }
    }
  }
  void Tick(absl::Duration by = absl::ZeroDuration()) {
    now_ += by;
    core_->Tick(now_, unacked_);
    Collect();
  }
  // To the next moment at which the core wants to be called, at most until then.
  void RunUntil(absl::Duration until) {
    while (core_->NextWakeup() <= until) {
      ASSERT_GE(core_->NextWakeup() + absl::Nanoseconds(1), now_) << "a wakeup that is never done";
      now_ = std::max(now_, core_->NextWakeup());
      const absl::Duration before = core_->NextWakeup();
      Tick();
      ASSERT_NE(core_->NextWakeup(), before) << "Tick left what was due";
    }
    now_ = until;
    Tick();
  }
  void Start(TaskStart task) {
    core_->Start(std::move(task), now_);
    Collect();
  }
  void Say(ProcessId process, rp::FromProcess message) {
    core_->Message(process, message, now_);
    Collect();
  }
  void Ready(ProcessId process) { Say(process, rp::Ready{100, "engine-1", "cpu"}); }
  void Die(ProcessId process, ExitStatus status = {ExitStatus::kSignalled, 9, ""}) {
    core_->Exited(process, status, now_);
    Collect();
  }
  void DieKilled() {
    for (const ProcessId process : killed_) Die(process);
    killed_.clear();
  }
  // The Rank of the first spawn is ready and training.
  void StartTraining(TaskStart task) {
    const size_t before = spawned_.size();
    Start(std::move(task));
    for (size_t i = before; i < spawned_.size(); ++i) Ready(spawned_[i].process);
  }
  std::vector<std::string> Ends() {
    std::vector<std::string> ends;
    for (const ReportAction& report : reports_) {
      if (const auto* ended = std::get_if<Ended>(&report.fact)) {
        ends.push_back(absl::StrCat(report.attempt, " ", Name(ended->reason)));
      }
    }
    return ends;
  }
  std::string LastMessage() { return std::get<Ended>(reports_.back().fact).message; }
  template <class M>
  std::vector<M> Sent() {
    std::vector<M> found;
    for (const SendAction& send : sent_) {
      if (const auto* m = std::get_if<M>(&send.message)) found.push_back(*m);
    }
    return found;
  }
  rp::FoldSaved Fold(int64_t attempt, int fold, bool last,
                     StopCause stopped_by = StopCause::kEpochs) {
    rp::FoldSaved saved;
    saved.attempt = attempt;
    saved.fold = fold;
    saved.last = last;
    saved.complete = last;
    saved.stopped_by = last ? stopped_by : StopCause::kNone;
    saved.score = 0.9;
    saved.oof = absl::StrCat("attempts/", attempt, "/oof.npy");
    return saved;
  }

  WorkerCoreOptions options_;
  std::vector<Slot> slots_;
  int64_t available_ = int64_t{8} << 30;
  bool unacked_ = false;
  std::unique_ptr<WorkerCore> core_;
  absl::Duration now_ = absl::Seconds(1000);

  std::vector<SpawnAction> spawned_;
  std::set<ProcessId> killed_;
  std::vector<SendAction> sent_;
  std::map<ProcessId, std::string> logs_;
  std::vector<std::string> lines_;  // of the Worker's own log
  std::vector<ReportAction> reports_;
  std::vector<GangReadyAction> gangs_ready_;
  std::vector<PublishRequest> publishes_;
  std::vector<rp::Answered> answers_;
};

}  // namespace traind::worker
