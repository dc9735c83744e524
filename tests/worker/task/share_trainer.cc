// A program without LibTorch that keeps the contract of worker/task/fold_trainer.h: it answers
// every row with the shares of the classes among the rows that it has seen. Small enough to show
// what such a program needs, and real enough to be killed, resumed, replanned and stopped.
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "common/data/table/npy.h"
#include "common/data/table/table.h"
#include "common/metrics/metrics.h"
#include "worker/data/fold_rows.h"
#include "worker/task/answer_files.h"
#include "worker/task/engine.h"
#include "worker/task/failure.h"
#include "worker/task/task_process.h"

namespace traind {
namespace {

constexpr int64_t kRowsPerStep = 50;
constexpr int64_t kProbeSteps = 5;
// About what a step of a small network takes: a run that is asked for without an end must not
// flood its reader.
constexpr int kStepMicroseconds = 500;

class ShareTrainer final : public FoldTrainer {
 public:
  ShareTrainer(rank_protocol::Train train, TaskControl& control, EventSink& sink,
               const Clock& clock)
      : train_(std::move(train)), control_(control), sink_(sink), clock_(clock) {}

  absl::Status Start() override {
    RETURN_IF_ERROR(Load());
    if (!train_.resume.empty()) Resume();
    rank_protocol::Started started;
    started.attempt = train_.attempt;
    started.parameters = static_cast<int64_t>(counts_.size());
    started.precision = "fp32";
    started.batch = static_cast<int>(kRowsPerStep);
    started.steps_per_epoch = StepsPerEpoch();
    started.first_step = step_;
    started.start_epoch = static_cast<int>(step_ / StepsPerEpoch());
    sink_.Send(started);
    return absl::OkStatus();
  }

  absl::StatusOr<Ending> TrainUntilStopped() override {
    const absl::Duration began = clock_.MonotonicNow();
    const int64_t first = step_;
    while (true) {
      const TaskControl::Orders orders = control_.orders();
      if (orders.stop) return Ending{orders.cause, orders.predict};
      if (step_ >= orders.epochs * StepsPerEpoch()) return Ending{StopCause::kEpochs, true};
      if (clock_.MonotonicNow() >= orders.stop_at) return Ending{StopCause::kTime, true};
      TakeStep();
      SendProgress();
      if (step_ == first + kProbeSteps) SendProbe(clock_.MonotonicNow() - began);
      if (step_ % StepsPerEpoch() == 0) RETURN_IF_ERROR(EndEpoch());
    }
  }

  absl::Status Finish(const Ending& ending) override {
    RETURN_IF_ERROR(SaveCheckpoint());
    if (!ending.predict) return absl::OkStatus();
    rank_protocol::FoldSaved saved;
    saved.attempt = train_.attempt;
    saved.fold = train_.fold;
    saved.seed = train_.seed;
    saved.last = true;
    saved.complete = ending.cause == StopCause::kEpochs;
    saved.stopped_by = ending.cause;
    saved.epochs_done = saved.best_epoch = EpochsDone();
    saved.step = step_;
    saved.score = ScoreNow();
    TestAnswers test;
    test.values = Answers(table_->rows(Split::kTest));
    ASSIGN_OR_RETURN(
        const SavedPredictions files,
        WritePredictions(train_.state_dir, train_.job, train_.attempt, "", classes(),
                         Answers(static_cast<int64_t>(rows_.validation.size())), test));
    saved.oof = files.oof;
    saved.oof_sha256 = files.oof_sha256;
    saved.test = files.test;
    saved.test_sha256 = files.test_sha256;
    sink_.Send(saved);
    return absl::OkStatus();
  }

 private:
  int classes() const { return static_cast<int>(counts_.size()); }
  int64_t StepsPerEpoch() const {
    return std::max<int64_t>(1, static_cast<int64_t>(rows_.training.size()) / kRowsPerStep);
  }
  double EpochsDone() const {
    return static_cast<double>(step_) / static_cast<double>(StepsPerEpoch());
  }
  std::string InState(const std::string& path) const {
    return absl::StrCat(train_.state_dir, "/", path);
  }
  std::string OwnDir() const { return AttemptDir(train_.job, train_.attempt); }

  absl::Status Load() {
    ASSIGN_OR_RETURN(table_, Table::Open(InState(train_.table)));
    ASSIGN_OR_RETURN(const auto folds, ReadNpyInt16(InState(FoldsPath(train_.job))));
    ASSIGN_OR_RETURN(rows_, SplitFold(*table_, folds.values, train_.fold));
    if (table_->schema().classes.empty()) {
      return DataError(absl::InvalidArgumentError("only classes have shares"));
    }
    counts_.assign(table_->schema().classes.size(), 1);
    return MakeDirs(InState(OwnDir()));
  }

  // A checkpoint is a line of numbers: the step, then the counts.
  void Resume() {
    const absl::StatusOr<std::string> bytes = ReadFile(InState(train_.resume));
    std::vector<int64_t> numbers;
    for (const absl::string_view word : absl::StrSplit(bytes.value_or(""), ' ')) {
      numbers.emplace_back();
      if (!absl::SimpleAtoi(word, &numbers.back())) numbers.clear();
    }
    if (numbers.size() != counts_.size() + 1) {
      sink_.Send(rank_protocol::LogText{
          "warning", absl::StrCat(train_.resume, " is damaged: the fold starts anew")});
      return;
    }
    step_ = numbers[0];
    counts_.assign(numbers.begin() + 1, numbers.end());
  }

  absl::Status SaveCheckpoint() {
    std::string line = absl::StrCat(step_);
    for (const int64_t count : counts_) absl::StrAppend(&line, " ", count);
    rank_protocol::CheckpointSaved saved;
    saved.manifest = absl::StrCat(OwnDir(), "/step-", step_, ".shares");
    RETURN_IF_ERROR(WriteFileDurably(InState(saved.manifest), line));
    ASSIGN_OR_RETURN(const FileDigest digest, DigestFile(InState(saved.manifest)));
    saved.attempt = train_.attempt;
    saved.step = step_;
    saved.epoch = EpochsDone();
    saved.sha256 = digest.sha256;
    saved.bytes = static_cast<int64_t>(line.size());
    saved.best_metric = ScoreNow();
    sink_.Send(saved);
    return absl::OkStatus();
  }

  void TakeStep() {
    usleep(kStepMicroseconds);
    const absl::Span<const int32_t> labels = table_->TargetClass(Split::kTrain);
    const int64_t begin = step_ % StepsPerEpoch() * kRowsPerStep;
    for (int64_t i = begin; i < begin + kRowsPerStep; ++i) {
      const auto row = static_cast<size_t>(rows_.training[static_cast<size_t>(i)]);
      ++counts_[static_cast<size_t>(labels[row])];
    }
    ++step_;
  }

  absl::Status EndEpoch() {
    rank_protocol::Epoch epoch;
    epoch.attempt = train_.attempt;
    epoch.epoch = static_cast<int>(step_ / StepsPerEpoch());
    epoch.step = step_;
    epoch.val_metric = epoch.best_metric = ScoreNow();
    sink_.Send(epoch);
    // Often enough for a kill to leave one, seldom enough for the disk.
    const bool due = epoch.epoch == 1 || epoch.epoch % 50 == 0;
    return due ? SaveCheckpoint() : absl::OkStatus();
  }

  void SendProgress() {
    rank_protocol::Progress progress;
    progress.attempt = train_.attempt;
    progress.step = step_;
    progress.epoch = EpochsDone();
    sink_.SendProgress(progress);
  }

  void SendProbe(absl::Duration trained) {
    rank_protocol::Probe probe;
    probe.attempt = train_.attempt;
    probe.step_s = probe.step_p90_s = absl::ToDoubleSeconds(trained) / kProbeSteps;
    probe.timed_steps = kProbeSteps;
    sink_.Send(probe);
  }

  // [rows, classes], all alike.
  std::vector<float> Answers(int64_t rows) const {
    double sum = 0;
    for (const int64_t count : counts_) sum += static_cast<double>(count);
    std::vector<float> answers;
    for (int64_t i = 0; i < rows; ++i) {
      for (const int64_t count : counts_) {
        answers.push_back(static_cast<float>(static_cast<double>(count) / sum));
      }
    }
    return answers;
  }

  double ScoreNow() const {
    const absl::Span<const int32_t> all = table_->TargetClass(Split::kTrain);
    std::vector<int32_t> labels;
    for (const int32_t row : rows_.validation) labels.push_back(all[static_cast<size_t>(row)]);
    const std::vector<float> answers = Answers(static_cast<int64_t>(labels.size()));
    return Score(DefaultMetricFor("classification"), answers, classes(), labels);
  }

  const rank_protocol::Train train_;
  TaskControl& control_;
  EventSink& sink_;
  const Clock& clock_;
  std::shared_ptr<const Table> table_;
  FoldRows rows_;
  std::vector<int64_t> counts_;  // of each class
  int64_t step_ = 0;
};

class ShareEngine final : public Engine {
 public:
  std::unique_ptr<FoldTrainer> NewTrainer(const rank_protocol::Train& train, TaskControl& control,
                                          EventSink& sink, const Clock& clock) override {
    return std::make_unique<ShareTrainer>(train, control, sink, clock);
  }
};

}  // namespace
}  // namespace traind

int main() {
  traind::ShareEngine engine;
  return traind::RunTaskProcess(engine, [] { return std::string("cpu"); });
}
