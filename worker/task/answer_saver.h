// A running fold's answers, written while training goes on.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>
#include <absl/types/span.h>

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "worker/rank_protocol/messages.h"
#include "worker/task/answer_files.h"
#include "worker/task/background_writer.h"
#include "worker/task/event_sink.h"

namespace traind {

// The fold whose answers are saved.
struct AnswerOwner {
  std::string state_dir;
  std::string job;
  int64_t attempt = 0;
  int fold = 0;
  int outputs = 1;
};

// Sends FoldSaved once the files are durable. A write that fails while the fold still trains costs
// a warning, not the fold.
//
// When: answers of better weights are saved where they cost less than a twentieth of the time since
// the last ones, and that is a quarter of the time trained. So a killed fold loses a fifth of its
// work at most, and the number of files grows with the logarithm of the time.
// Threads: confined to one; files are written on the writer's.
class AnswerSaver {
 public:
  // The references outlive it. The writer, which may write other files, too, ends before this.
  AnswerSaver(AnswerOwner owner, BackgroundWriter& writer, EventSink& sink, const Clock& clock);

  // least: no sooner after the last ones than this. False while something is being written.
  bool Due(absl::Duration predict_time, absl::Duration least = absl::ZeroDuration());

  // The path for test answers that are written before Start or SaveLast is called (TestAnswers).
  std::string NextTestFile(bool last) const;
  // Does nothing while something is being written. saved: all but the files and digests.
  // oof: [rows that the fold validates, outputs].
  void Start(rank_protocol::FoldSaved saved, std::vector<float> oof, TestAnswers test);
  // The fold's last answers, written at once. Errors: those of WritePredictions, as StorageError.
  absl::Status SaveLast(rank_protocol::FoldSaved saved, absl::Span<const float> oof,
                        const TestAnswers& test);

  // Warns that a file of the fold could not be saved. Threads: safe.
  void Warn(absl::string_view file, const absl::Status& status);

 private:
  absl::Status Save(rank_protocol::FoldSaved saved, const std::string& suffix,
                    absl::Span<const float> oof, const TestAnswers& test, SavedPredictions& files);
  void SaveInterim(rank_protocol::FoldSaved saved, int64_t number, absl::Span<const float> oof,
                   const TestAnswers& test);
  void ForgetOldAnswers();
  // Sends nothing after the last ones: a later message would pass for newer answers.
  void SendUnlessOver(const rank_protocol::FoldSaved& saved) ABSL_LOCKS_EXCLUDED(sending_);

  const AnswerOwner owner_;
  BackgroundWriter& writer_;
  EventSink& sink_;
  const Clock& clock_;
  const absl::Duration started_;
  absl::Duration last_;
  int64_t number_ = 0;  // of answers of the running fold
  absl::Mutex sending_;
  bool sent_last_ ABSL_GUARDED_BY(sending_) = false;
  std::deque<SavedPredictions> interim_;  // on disk; used by the writer's thread only
};

}  // namespace traind
