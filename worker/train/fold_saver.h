// A running fold's checkpoints and predictions, written while training goes on.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/metrics/metrics.h"
#include "worker/checkpoint/background_writer.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/predict/predictor.h"
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

// Says CheckpointSaved and FoldSaved once each is durable. A write that fails
// while the fold still trains costs a warning, not the fold.
//
// When: the first checkpoint as soon as there is something to save, then every
// CheckpointPause(). Predictions of better weights where they cost less than a
// twentieth of the time since the last ones, and that is a quarter of the time
// trained: a killed fold loses a fifth of its work at most, and the number of files
// grows with the logarithm of the time.
// Threads: confined to one; files are written on another.
class FoldSaver {
 public:
  FoldSaver(FoldSaverOptions options, EventSink& sink, const Clock& clock);

  // Neither is due while something is being written.
  bool CheckpointDue();
  bool PredictionsDue(absl::Duration predict_time);

  // false: skipped, as the write before still runs. The layout must outlive this.
  // score: the metric of the weights at its step, where that is known. One whose weights
  // are not finite is not written.
  bool StartCheckpoint(const ParameterLayout& layout, Checkpoint checkpoint,
                       std::optional<double> score);
  // Where the test answers that are saved next are written beforehand, if that is done.
  std::string NextTestFile(bool last) const;
  // `saved` has all but the files and digests.
  void StartPredictions(rank_protocol::FoldSaved saved, std::vector<float> oof,
                        TestAnswers test);  // skipped likewise

  // The fold's last predictions: written at once, before any checkpoint.
  absl::Status SaveLast(rank_protocol::FoldSaved saved, absl::Span<const float> oof,
                        const TestAnswers& test);

  // false: something is still being written after `timeout`.
  bool Wait(absl::Duration timeout) { return writer_.Wait(timeout); }

 private:
  absl::Duration CheckpointPause() const;
  void WriteCheckpointNow(const ParameterLayout& layout, const Checkpoint& checkpoint,
                          std::optional<double> score);
  void RememberScore(int64_t step, std::optional<double> score);
  void WritePredictionsNow(rank_protocol::FoldSaved saved, int64_t number,
                           absl::Span<const float> oof, const TestAnswers& test);
  void ForgetOldPredictions();
  // Sends nothing after the last ones: a later message would pass for newer predictions.
  void SendUnlessOver(const rank_protocol::FoldSaved& saved) ABSL_LOCKS_EXCLUDED(sending_);
  void Warn(absl::string_view what, const absl::Status& status);

  const FoldSaverOptions options_;
  EventSink& sink_;
  const Clock& clock_;
  const absl::Duration started_;
  absl::Duration last_checkpoint_ = -absl::InfiniteDuration();
  absl::Duration last_predictions_;
  int64_t interim_number_ = 0;
  absl::Mutex sending_;
  bool sent_last_ ABSL_GUARDED_BY(sending_) = false;
  // Set by the writer's thread, read while it writes nothing.
  absl::Duration write_time_;
  // Used by the writer's thread only.
  std::vector<std::pair<double, int64_t>> best_checkpoints_;  // score, step; best first
  std::deque<SavedPredictions> interim_;                      // on disk
  BackgroundWriter writer_;  // last: its thread ends before the rest goes
};

}  // namespace traind
