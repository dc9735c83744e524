// The files that a fold of trees writes while it trains and at its end.
#pragma once

#include <absl/time/time.h>

#include <cstdint>
#include <string>

#include "common/base/clock.h"
#include "worker/predict/model_file.h"
#include "worker/rank_protocol/messages.h"
#include "worker/task/answer_saver.h"
#include "worker/task/background_writer.h"
#include "worker/task/event_sink.h"
#include "worker/trees/tree_checkpoint.h"

namespace traind {

// Sends CheckpointSaved once a checkpoint is durable. A write that fails while the fold still
// trains costs a warning, not the fold.
//
// When: the first checkpoint and the first answers come after kFirst, so that a short fold writes
// its last files alone; then a checkpoint every `checkpoint_every_ms`, and answers in the rhythm
// of AnswerSaver.
// Threads: confined to one; files are written on another.
class TreeSaver {
 public:
  // References outlive it. The Attempt's folder exists.
  TreeSaver(const rank_protocol::Train& train, int outputs, EventSink& sink, const Clock& clock);

  // Writes the file with which the checkpoints beside it predict rows that come later.
  void StartModelFile(ModelFile file);

  // Neither is due while something is being written.
  bool CheckpointDue();
  bool AnswersDue(absl::Duration predict_time);

  // false: skipped, as the write before still runs.
  bool StartCheckpoint(TreeCheckpoint checkpoint);
  AnswerSaver& answers() { return answers_; }
  // The trees that predict, as a file that the library's Python package reads.
  void StartBestTrees(std::string trees, const char* suffix);

  // false: something is still being written after `timeout`.
  bool Wait(absl::Duration timeout) { return writer_.Wait(timeout); }

 private:
  void WriteCheckpointNow(const TreeCheckpoint& checkpoint);

  const rank_protocol::Train& train_;
  const std::string dir_;  // the Attempt's
  EventSink& sink_;
  const Clock& clock_;
  absl::Duration last_checkpoint_;
  bool first_checkpoint_ = true;
  AnswerSaver answers_;
  BackgroundWriter writer_;  // last: its thread ends before the rest goes
};

}  // namespace traind
