// What a fold of trees leaves on disk while it trains and at its end.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "worker/checkpoint/background_writer.h"
#include "worker/predict/model_file.h"
#include "worker/rank_protocol/messages.h"
#include "worker/task/answer_files.h"
#include "worker/task/event_sink.h"
#include "worker/trees/tree_checkpoint.h"

namespace traind {

// Says CheckpointSaved and FoldSaved once each is durable. A write that fails while the fold
// still trains costs a warning, not the fold.
//
// When: the first checkpoint after kFirst, then every `checkpoint_every`. The first answers after
// kFirst, too; later ones where predicting costs less than a twentieth of the time since the last
// ones, and that is a quarter of the time trained. So a short fold writes its last files alone.
// Threads: confined to one; files are written on another.
class TreeSaver {
 public:
  // References outlive it. The Attempt's folder exists.
  TreeSaver(const rank_protocol::Train& train, int outputs, EventSink& sink, const Clock& clock);

  // Beside the checkpoints: with it they predict rows that come later.
  void StartModelFile(ModelFile file);

  // Neither is due while something is being written.
  bool CheckpointDue();
  bool AnswersDue(absl::Duration predict_time);

  // false: skipped, as the write before still runs.
  bool StartCheckpoint(TreeCheckpoint checkpoint);
  // `saved` has all but the files and digests.
  void StartAnswers(rank_protocol::FoldSaved saved, std::vector<float> oof,
                    std::vector<float> test);
  // The fold's last answers, written at once.
  absl::Status SaveLast(rank_protocol::FoldSaved saved, absl::Span<const float> oof,
                        std::vector<float> test);
  // The trees that predict, as a file that the library's Python package reads.
  void StartBestTrees(std::string trees, const char* suffix);

  // false: something is still being written after `timeout`.
  bool Wait(absl::Duration timeout) { return writer_.Wait(timeout); }

 private:
  void WriteCheckpointNow(const TreeCheckpoint& checkpoint);
  void WriteAnswersNow(rank_protocol::FoldSaved saved, int64_t number, absl::Span<const float> oof,
                       const TestAnswers& test);
  absl::Status Write(rank_protocol::FoldSaved& saved, const std::string& suffix,
                     absl::Span<const float> oof, const TestAnswers& test, SavedPredictions& files);
  void Tell(const rank_protocol::FoldSaved& saved) ABSL_LOCKS_EXCLUDED(telling_);
  void Warn(absl::string_view what, const absl::Status& status);

  const rank_protocol::Train& train_;
  const std::string dir_;  // the Attempt's
  const int outputs_;
  EventSink& sink_;
  const Clock& clock_;
  const absl::Duration started_;
  absl::Duration last_checkpoint_, last_answers_;
  bool first_checkpoint_ = true;
  int64_t number_ = 0;  // of answers of the running fold
  absl::Mutex telling_;
  bool told_last_ ABSL_GUARDED_BY(telling_) = false;
  std::deque<SavedPredictions> interim_;  // on disk; the writer's thread alone uses it
  BackgroundWriter writer_;               // last: its thread ends before the rest goes
};

}  // namespace traind
