#include "worker/train/fold_saver.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "common/base/job_layout.h"

namespace traind {
namespace {

constexpr int kCheckpointsKept = 2;
constexpr int kPauseOverWriting = 50;
constexpr absl::Duration kLongestPause = absl::Minutes(1);

}  // namespace

FoldSaver::FoldSaver(FoldSaverOptions options, EventSink& sink, const Clock& clock)
    : options_(std::move(options)),
      sink_(sink),
      clock_(clock),
      answers_(
          {options_.state_dir, options_.job, options_.attempt, options_.fold, options_.outputs},
          writer_, sink, clock) {}

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
  if (!saved.ok()) return answers_.Warn("checkpoint", saved.status());
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
  if (!pruned.ok()) answers_.Warn("old checkpoints", pruned);
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

}  // namespace traind
