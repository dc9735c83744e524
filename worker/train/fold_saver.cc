#include "worker/train/fold_saver.h"

#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "worker/task/failure.h"

namespace traind {
namespace {

constexpr int kCheckpointsKept = 2;
// Whoever was told of a file may still be about to read it.
constexpr size_t kInterimKept = 3;
constexpr int kPauseOverWriting = 50;
constexpr absl::Duration kLongestPause = absl::Minutes(1);
constexpr int kMostOfTime = 20;  // a twentieth
constexpr int kShareOfPast = 4;  // a quarter

std::string InterimSuffix(int64_t number) { return absl::StrCat("-", number); }

}  // namespace

FoldSaver::FoldSaver(FoldSaverOptions options, EventSink& sink, const Clock& clock)
    : options_(std::move(options)),
      sink_(sink),
      clock_(clock),
      started_(clock.MonotonicNow()),
      last_predictions_(started_) {}

bool FoldSaver::CheckpointDue() {
  return clock_.MonotonicNow() - last_checkpoint_ >= options_.checkpoint_every &&
         Wait(absl::ZeroDuration()) &&
         clock_.MonotonicNow() - last_checkpoint_ >= CheckpointPause();
}

// REQUIRES: nothing is being written.
absl::Duration FoldSaver::CheckpointPause() const {
  if (!options_.checkpoints_by_cost) return options_.checkpoint_every;
  const absl::Duration by_cost = std::min(kPauseOverWriting * write_time_, kLongestPause);
  return std::max(options_.checkpoint_every, by_cost);
}

bool FoldSaver::PredictionsDue(absl::Duration predict_time) {
  const absl::Duration now = clock_.MonotonicNow();
  const absl::Duration since = now - last_predictions_;
  return since >= kMostOfTime * predict_time && since >= (now - started_) / kShareOfPast &&
         Wait(absl::ZeroDuration());
}

bool FoldSaver::StartCheckpoint(const ParameterLayout& layout, Checkpoint checkpoint,
                                std::optional<double> score) {
  auto shared = std::make_shared<const Checkpoint>(std::move(checkpoint));
  const bool taken = writer_.TryStart(
      [this, &layout, shared, score] { WriteCheckpointNow(layout, *shared, score); });
  if (taken) last_checkpoint_ = clock_.MonotonicNow();
  return taken;
}

void FoldSaver::WriteCheckpointNow(const ParameterLayout& layout, const Checkpoint& checkpoint,
                                   std::optional<double> score) {
  const absl::Span<const float> weights = checkpoint.slots.at("weights");
  if (!std::all_of(weights.begin(), weights.end(), [](float w) { return std::isfinite(w); })) {
    return;
  }
  const absl::Duration started = clock_.MonotonicNow();
  const std::string dir = AttemptDir(options_.job, options_.attempt);
  const auto saved = WriteCheckpoint(options_.state_dir, dir, layout, checkpoint);
  write_time_ = clock_.MonotonicNow() - started;
  if (!saved.ok()) return Warn("checkpoint", saved.status());
  rank_protocol::CheckpointSaved message;
  message.attempt = options_.attempt;
  message.step = checkpoint.step;
  message.epoch = checkpoint.epoch_fraction;
  message.manifest = saved->manifest;
  message.sha256 = saved->sha256;
  message.bytes = saved->bytes;
  message.best_metric = checkpoint.best_metric;
  message.save_ms = absl::ToInt64Milliseconds(write_time_);
  sink_.Send(message);
  RememberScore(checkpoint.step, score);
  std::set<int64_t> best;
  for (const auto& [value, step] : best_checkpoints_) best.insert(step);
  const absl::Status pruned = PruneCheckpoints(options_.state_dir, dir, kCheckpointsKept, best);
  if (!pruned.ok()) Warn("old checkpoints", pruned);
}

void FoldSaver::RememberScore(int64_t step, std::optional<double> score) {
  if (options_.keep_best == 0 || !score.has_value()) return;
  // Behind its equals: the one that got there first stays.
  auto at = best_checkpoints_.begin();
  while (at != best_checkpoints_.end() && !Better(options_.metric, *score, at->first)) ++at;
  best_checkpoints_.insert(at, {*score, step});
  if (best_checkpoints_.size() > static_cast<size_t>(options_.keep_best)) {
    best_checkpoints_.pop_back();
  }
}

std::string FoldSaver::NextTestFile(bool last) const {
  return TestPath(options_.state_dir, options_.job, options_.attempt,
                  last ? "" : InterimSuffix(interim_number_ + 1));
}

void FoldSaver::StartPredictions(rank_protocol::FoldSaved saved, std::vector<float> oof,
                                 TestAnswers test) {
  const auto shared_oof = std::make_shared<const std::vector<float>>(std::move(oof));
  const auto shared_test = std::make_shared<const TestAnswers>(std::move(test));
  const int64_t number = ++interim_number_;
  const bool taken =
      writer_.TryStart([this, saved = std::move(saved), number, shared_oof, shared_test] {
        WritePredictionsNow(saved, number, *shared_oof, *shared_test);
      });
  if (taken) {
    last_predictions_ = clock_.MonotonicNow();
  } else if (!shared_test->file.empty()) {
    unlink(shared_test->file.c_str());
  }
}

void FoldSaver::WritePredictionsNow(rank_protocol::FoldSaved saved, int64_t number,
                                    absl::Span<const float> oof, const TestAnswers& test) {
  const auto files = WritePredictions(options_.state_dir, options_.job, options_.attempt,
                                      InterimSuffix(number), options_.outputs, oof, test);
  if (!files.ok()) return Warn("predictions", files.status());
  saved.oof = files->oof;
  saved.oof_sha256 = files->oof_sha256;
  saved.test = files->test;
  saved.test_sha256 = files->test_sha256;
  SendUnlessOver(saved);
  interim_.push_back(*files);
  ForgetOldPredictions();
}

void FoldSaver::SendUnlessOver(const rank_protocol::FoldSaved& saved) {
  const absl::MutexLock lock(&sending_);
  if (sent_last_) return;
  sent_last_ = saved.last;
  sink_.Send(saved);
}

void FoldSaver::ForgetOldPredictions() {
  const std::string job_dir = absl::StrCat(options_.state_dir, "/", JobDir(options_.job), "/");
  while (interim_.size() > kInterimKept) {
    const SavedPredictions& oldest = interim_.front();
    unlink((job_dir + oldest.oof).c_str());
    if (!oldest.test.empty()) unlink((job_dir + oldest.test).c_str());
    interim_.pop_front();
  }
}

absl::Status FoldSaver::SaveLast(rank_protocol::FoldSaved saved, absl::Span<const float> oof,
                                 const TestAnswers& test) {
  const auto files = WritePredictions(options_.state_dir, options_.job, options_.attempt, "",
                                      options_.outputs, oof, test);
  if (!files.ok()) return StorageError(files.status());
  saved.oof = files->oof;
  saved.oof_sha256 = files->oof_sha256;
  saved.test = files->test;
  saved.test_sha256 = files->test_sha256;
  SendUnlessOver(saved);
  return absl::OkStatus();
}

void FoldSaver::Warn(absl::string_view what, const absl::Status& status) {
  sink_.Send(rank_protocol::LogText{
      "warning", absl::StrCat("fold ", options_.fold, " trains on, but its ", what,
                              " could not be saved: ", status.message())});
}

}  // namespace traind
