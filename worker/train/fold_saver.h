// A running fold's checkpoints, written while training goes on, and its answers beside them.
#pragma once

#include <absl/time/time.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/metrics/metrics.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/task/answer_saver.h"
#include "worker/task/background_writer.h"
#include "worker/task/event_sink.h"

namespace traind {

struct FoldSaverOptions {
  std::string state_dir;
  std::string job;
  int64_t attempt = 0;
  int fold = 0;
  int outputs = 1;
  absl::Duration checkpoint_every = absl::Seconds(60);
  // Where writing one takes more than a fiftieth of checkpoint_every, the next one comes later,
  // though within a minute.
  bool checkpoints_by_cost = false;
  int keep_best = 0;  // checkpoints, besides the newest two
  Metric metric;
};

// Sends CheckpointSaved once a checkpoint is durable. A write that fails while the fold still
// trains costs a warning, not the fold.
//
// When: the first checkpoint is written as soon as there is something to save, then one every
// CheckpointPause().
// Threads: confined to one; files are written on another.
class FoldSaver {
 public:
  FoldSaver(FoldSaverOptions options, EventSink& sink, const Clock& clock);

  // False while something is being written.
  bool CheckpointDue();

  // false: skipped, as the write before still runs. The layout must outlive this.
  // score: the metric of the weights at its step, where that is known. One whose weights
  // are not finite is not written.
  bool StartCheckpoint(const ParameterLayout& layout, Checkpoint checkpoint,
                       std::optional<double> score);
  AnswerSaver& answers() { return answers_; }

  // false: something is still being written after `timeout`.
  bool Wait(absl::Duration timeout) { return writer_.Wait(timeout); }

 private:
  absl::Duration CheckpointPause() const;
  void WriteCheckpointNow(const ParameterLayout& layout, const Checkpoint& checkpoint,
                          std::optional<double> score);
  void RememberScore(int64_t step, std::optional<double> score);

  const FoldSaverOptions options_;
  EventSink& sink_;
  const Clock& clock_;
  absl::Duration last_checkpoint_ = -absl::InfiniteDuration();
  // Set by the writer's thread, read while it writes nothing.
  absl::Duration write_time_;
  // Used by the writer's thread only.
  std::vector<std::pair<double, int64_t>> best_checkpoints_;  // score, step; best first
  AnswerSaver answers_;
  BackgroundWriter writer_;  // last: its thread ends before the rest goes
};

}  // namespace traind
