#include "worker/treefold/tree_saver.h"

#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "worker/task/failure.h"

namespace traind {
namespace {

constexpr absl::Duration kFirst = absl::Milliseconds(200);
constexpr size_t kCheckpointsKept = 2;
// Whoever was told of a file may still be about to read it.
constexpr size_t kInterimKept = 3;
constexpr int kMostOfTime = 20;  // a twentieth
constexpr int kShareOfPast = 4;  // a quarter

}  // namespace

TreeSaver::TreeSaver(const rank_protocol::Train& train, int outputs, EventSink& sink,
                     const Clock& clock)
    : train_(train),
      dir_(AttemptDir(train.job, train.attempt)),
      outputs_(outputs),
      sink_(sink),
      clock_(clock),
      started_(clock.MonotonicNow()),
      last_checkpoint_(started_),
      last_answers_(started_) {}

void TreeSaver::StartModelFile(ModelFile file) {
  writer_.TryStart([this, file = std::move(file)] {
    const absl::Status saved = WriteModelFile(train_.state_dir, dir_, file);
    if (!saved.ok()) Warn("model.json, which later files need,", saved);
  });
}

bool TreeSaver::CheckpointDue() {
  const absl::Duration every =
      first_checkpoint_ ? kFirst : absl::Milliseconds(train_.checkpoint_every_ms);
  return clock_.MonotonicNow() - last_checkpoint_ >= every && Wait(absl::ZeroDuration());
}

bool TreeSaver::AnswersDue(absl::Duration predict_time) {
  const absl::Duration now = clock_.MonotonicNow();
  const absl::Duration since = now - last_answers_;
  return since >= kFirst && since >= kMostOfTime * predict_time &&
         since >= (now - started_) / kShareOfPast && Wait(absl::ZeroDuration());
}

bool TreeSaver::StartCheckpoint(TreeCheckpoint checkpoint) {
  const auto shared = std::make_shared<const TreeCheckpoint>(std::move(checkpoint));
  const bool taken = writer_.TryStart([this, shared] { WriteCheckpointNow(*shared); });
  if (taken) {
    last_checkpoint_ = clock_.MonotonicNow();
    first_checkpoint_ = false;
  }
  return taken;
}

void TreeSaver::WriteCheckpointNow(const TreeCheckpoint& checkpoint) {
  const absl::Duration began = clock_.MonotonicNow();
  const auto saved = WriteTrees(train_.state_dir, dir_, checkpoint);
  if (!saved.ok()) return Warn("checkpoint", saved.status());
  rank_protocol::CheckpointSaved message;
  message.attempt = train_.attempt;
  message.step = checkpoint.rounds;
  message.epoch = checkpoint.epoch;
  message.manifest = saved->manifest;
  message.sha256 = saved->sha256;
  message.bytes = saved->bytes;
  message.best_metric = checkpoint.best_metric;
  message.save_ms = absl::ToInt64Milliseconds(clock_.MonotonicNow() - began);
  sink_.Send(message);
  PruneTrees(train_.state_dir, dir_, kCheckpointsKept);
}

void TreeSaver::StartAnswers(rank_protocol::FoldSaved saved, std::vector<float> oof,
                             std::vector<float> test) {
  const auto rows = std::make_shared<const std::vector<float>>(std::move(oof));
  auto answers = std::make_shared<TestAnswers>();
  answers->values = std::move(test);
  const int64_t number = ++number_;
  const bool taken = writer_.TryStart([this, saved = std::move(saved), number, rows, answers] {
    WriteAnswersNow(saved, number, *rows, *answers);
  });
  if (taken) last_answers_ = clock_.MonotonicNow();
}

void TreeSaver::WriteAnswersNow(rank_protocol::FoldSaved saved, int64_t number,
                                absl::Span<const float> oof, const TestAnswers& test) {
  SavedPredictions files;
  const absl::Status written = Write(saved, absl::StrCat("-", number), oof, test, files);
  if (!written.ok()) return Warn("answers", written);
  Tell(saved);
  interim_.push_back(std::move(files));
  const std::string job = absl::StrCat(train_.state_dir, "/", JobDir(train_.job), "/");
  while (interim_.size() > kInterimKept) {
    unlink((job + interim_.front().oof).c_str());
    if (!interim_.front().test.empty()) unlink((job + interim_.front().test).c_str());
    interim_.pop_front();
  }
}

absl::Status TreeSaver::SaveLast(rank_protocol::FoldSaved saved, absl::Span<const float> oof,
                                 std::vector<float> test) {
  TestAnswers answers;
  answers.values = std::move(test);
  SavedPredictions files;
  RETURN_IF_ERROR(StorageError(Write(saved, "", oof, answers, files)));
  Tell(saved);
  return absl::OkStatus();
}

void TreeSaver::StartBestTrees(std::string trees, const char* suffix) {
  const std::string path = absl::StrCat(train_.state_dir, "/", dir_, "/model.", suffix);
  writer_.TryStart([this, path, trees = std::move(trees)] {
    const absl::Status saved = WriteFileDurably(path, trees);
    if (!saved.ok()) Warn("file of trees", saved);
  });
}

absl::Status TreeSaver::Write(rank_protocol::FoldSaved& saved, const std::string& suffix,
                              absl::Span<const float> oof, const TestAnswers& test,
                              SavedPredictions& files) {
  ASSIGN_OR_RETURN(files, WritePredictions(train_.state_dir, train_.job, train_.attempt, suffix,
                                           outputs_, oof, test));
  saved.oof = files.oof;
  saved.oof_sha256 = files.oof_sha256;
  saved.test = files.test;
  saved.test_sha256 = files.test_sha256;
  return absl::OkStatus();
}

// After the last answers none is told of any more: it would pass for newer.
void TreeSaver::Tell(const rank_protocol::FoldSaved& saved) {
  const absl::MutexLock lock(&telling_);
  if (told_last_) return;
  told_last_ = saved.last;
  sink_.Send(saved);
}

void TreeSaver::Warn(absl::string_view what, const absl::Status& status) {
  sink_.Send(rank_protocol::LogText{"warning",
                                    absl::StrCat("fold ", train_.fold, " trains on, but its ", what,
                                                 " could not be saved: ", status.message())});
}

}  // namespace traind
