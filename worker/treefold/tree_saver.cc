#include "worker/treefold/tree_saver.h"

#include <absl/strings/str_cat.h>

#include <memory>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"

namespace traind {
namespace {

constexpr absl::Duration kFirst = absl::Milliseconds(200);
constexpr size_t kCheckpointsKept = 2;

}  // namespace

TreeSaver::TreeSaver(const rank_protocol::Train& train, int outputs, EventSink& sink,
                     const Clock& clock)
    : train_(train),
      dir_(AttemptDir(train.job, train.attempt)),
      sink_(sink),
      clock_(clock),
      last_checkpoint_(clock.MonotonicNow()),
      answers_({train.state_dir, train.job, train.attempt, train.fold, outputs}, writer_, sink,
               clock) {}

void TreeSaver::StartModelFile(ModelFile file) {
  writer_.TryStart([this, file = std::move(file)] {
    const absl::Status saved = WriteModelFile(train_.state_dir, dir_, file);
    if (!saved.ok()) answers_.Warn("model.json, which later files need,", saved);
  });
}

bool TreeSaver::CheckpointDue() {
  const absl::Duration every =
      first_checkpoint_ ? kFirst : absl::Milliseconds(train_.checkpoint_every_ms);
  return clock_.MonotonicNow() - last_checkpoint_ >= every && Wait(absl::ZeroDuration());
}

bool TreeSaver::AnswersDue(absl::Duration predict_time) {
  return answers_.Due(predict_time, /*least=*/kFirst);
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
  if (!saved.ok()) return answers_.Warn("checkpoint", saved.status());
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

void TreeSaver::StartBestTrees(std::string trees, const char* suffix) {
  const std::string path = absl::StrCat(train_.state_dir, "/", dir_, "/model.", suffix);
  writer_.TryStart([this, path, trees = std::move(trees)] {
    const absl::Status saved = WriteFileDurably(path, trees);
    if (!saved.ok()) answers_.Warn("file of trees", saved);
  });
}

}  // namespace traind
