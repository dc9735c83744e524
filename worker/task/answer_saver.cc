#include "worker/task/answer_saver.h"

#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "worker/task/failure.h"

namespace traind {
namespace {

// A reader that was told of a file may not have opened it yet.
constexpr size_t kInterimKept = 3;
constexpr int kMostOfTime = 20;  // a twentieth
constexpr int kShareOfPast = 4;  // a quarter

std::string InterimSuffix(int64_t number) { return absl::StrCat("-", number); }

}  // namespace

AnswerSaver::AnswerSaver(AnswerOwner owner, BackgroundWriter& writer, EventSink& sink,
                         const Clock& clock)
    : owner_(std::move(owner)),
      writer_(writer),
      sink_(sink),
      clock_(clock),
      started_(clock.MonotonicNow()),
      last_(started_) {}

bool AnswerSaver::Due(absl::Duration predict_time, absl::Duration least) {
  const absl::Duration now = clock_.MonotonicNow();
  const absl::Duration since = now - last_;
  return since >= least && since >= kMostOfTime * predict_time &&
         since >= (now - started_) / kShareOfPast && writer_.Wait(absl::ZeroDuration());
}

std::string AnswerSaver::NextTestFile(bool last) const {
  return TestPath(owner_.state_dir, owner_.job, owner_.attempt,
                  last ? "" : InterimSuffix(number_ + 1));
}

void AnswerSaver::Start(rank_protocol::FoldSaved saved, std::vector<float> oof, TestAnswers test) {
  const auto shared_oof = std::make_shared<const std::vector<float>>(std::move(oof));
  const auto shared_test = std::make_shared<const TestAnswers>(std::move(test));
  const int64_t number = ++number_;
  const bool taken =
      writer_.TryStart([this, saved = std::move(saved), number, shared_oof, shared_test] {
        SaveInterim(saved, number, *shared_oof, *shared_test);
      });
  if (taken) {
    last_ = clock_.MonotonicNow();
  } else if (!shared_test->file.empty()) {
    unlink(shared_test->file.c_str());
  }
}

void AnswerSaver::SaveInterim(rank_protocol::FoldSaved saved, int64_t number,
                              absl::Span<const float> oof, const TestAnswers& test) {
  SavedPredictions files;
  const absl::Status status = Save(std::move(saved), InterimSuffix(number), oof, test, files);
  if (!status.ok()) return Warn("predictions", status);
  interim_.push_back(std::move(files));
  ForgetOldAnswers();
}

absl::Status AnswerSaver::SaveLast(rank_protocol::FoldSaved saved, absl::Span<const float> oof,
                                   const TestAnswers& test) {
  SavedPredictions files;
  return StorageError(Save(std::move(saved), "", oof, test, files));
}

absl::Status AnswerSaver::Save(rank_protocol::FoldSaved saved, const std::string& suffix,
                               absl::Span<const float> oof, const TestAnswers& test,
                               SavedPredictions& files) {
  ASSIGN_OR_RETURN(files, WritePredictions(owner_.state_dir, owner_.job, owner_.attempt, suffix,
                                           owner_.outputs, oof, test));
  saved.oof = files.oof;
  saved.oof_sha256 = files.oof_sha256;
  saved.test = files.test;
  saved.test_sha256 = files.test_sha256;
  SendUnlessOver(saved);
  return absl::OkStatus();
}

void AnswerSaver::SendUnlessOver(const rank_protocol::FoldSaved& saved) {
  const absl::MutexLock lock(&sending_);
  if (sent_last_) return;
  sent_last_ = saved.last;
  sink_.Send(saved);
}

void AnswerSaver::ForgetOldAnswers() {
  const std::string job_dir = absl::StrCat(owner_.state_dir, "/", JobDir(owner_.job), "/");
  while (interim_.size() > kInterimKept) {
    const SavedPredictions& oldest = interim_.front();
    unlink((job_dir + oldest.oof).c_str());
    if (!oldest.test.empty()) unlink((job_dir + oldest.test).c_str());
    interim_.pop_front();
  }
}

void AnswerSaver::Warn(absl::string_view file, const absl::Status& status) {
  sink_.Send(rank_protocol::LogText{"warning",
                                    absl::StrCat("fold ", owner_.fold, " trains on, but its ", file,
                                                 " could not be saved: ", status.message())});
}

}  // namespace traind
