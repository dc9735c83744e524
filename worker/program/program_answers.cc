// What a program has left: its files, its predictions, the record of both.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "common/data/table/mapped_file.h"
#include "worker/program/program_trainer.h"
#include "worker/task/failure.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

// A file that nobody has written to for so long is taken for whole.
constexpr absl::Duration kSettled = absl::Seconds(1);
// Interim answers, and copies of checkpoints, take at most a tenth of the time each.
constexpr int kPause = 10;
constexpr absl::Duration kLongestWrite = absl::Seconds(30);

}  // namespace

// ---- its answer -------------------------------------------------------------

absl::Status ProgramTrainer::Finish(const Ending& ending) {
  if (train_.rank > 0) return absl::OkStatus();
  if (!ending.predict) {
    // The next start may be on another Worker. What it has written when it was told to stop is
    // whole.
    if (train_.files_travel && !terminated_ && !killed_) checkpoints_->Keep(clock_.WallNow());
    PackCheckpoints();
    return absl::OkStatus();
  }
  const bool by_itself = !stop_.has_value();
  const bool enough = stop_cause_ == StopCause::kEpochs && program_->end()->wait_status == 0;
  if (rows_ != nullptr) return SaveRows(ending.cause, by_itself || enough);
  return SaveAnswer(ending.cause, by_itself || enough);
}

// It has failed; what it was asked for may be there all the same.
void ProgramTrainer::Rescue() {
  if (train_.rank > 0 || spec_.expect.empty() || program_ == nullptr || filled_disk_) return;
  if (rows_ != nullptr) return RescueRows();
  const bool again = WasKilled();
  const absl::Status saved = SaveAnswer(StopCause::kNone, /*complete=*/false, /*last=*/!again);
  if (saved.ok()) {
    Log("warning", absl::StrCat("the program ", again ? "was killed" : "failed",
                                ", but left the expected files"));
  }
}

absl::StatusOr<std::vector<ResultFile>> ProgramTrainer::Results() {
  size_t left_out = 0;
  auto results = FindResults(InFold("work"), marks_, InFold("out"), spec_.expect, &left_out);
  if (left_out > 0) {
    Log("warning", absl::StrCat("fold ", train_.fold, ": ", left_out, " files beyond ",
                                kMostResults, " are not copied; run.expect names those that are"));
  }
  return results;
}

// Takes away the expected files that are not as sample_submission and ranges want them; `wrong`
// tells of the first.
void ProgramTrainer::RemoveUnsound(std::vector<ResultFile>& results, std::string& wrong) const {
  if (sample_.empty() || rows_ != nullptr) return;
  std::vector<ResultFile> sound;
  for (ResultFile& file : results) {
    if (file.bytes > 0 && !Matched({file}, spec_.expect).empty()) {
      const auto mapped = MappedFile::Open(file.path);
      const absl::Status checked =
          mapped.ok() ? sample_.Check((*mapped)->bytes(), file.name) : mapped.status();
      if (!checked.ok() && wrong.empty()) wrong = std::string(checked.message());
      if (!checked.ok()) continue;
    }
    sound.push_back(std::move(file));
  }
  results = std::move(sound);
}

// Keeps copies of what the program resumes from.
void ProgramTrainer::KeepCheckpoints() {
  const absl::Duration now = clock_.MonotonicNow();
  if (train_.rank > 0 || setting_up_ || stop_.has_value() || now < keep_at_) return;
  checkpoints_->Keep(clock_.WallNow() - kSettled);
  PackCheckpoints();
  const absl::Duration took = clock_.MonotonicNow() - now;
  keep_at_ = now + std::max(kSettled, kPause * took);
}

void ProgramTrainer::PackCheckpoints() {
  if (!train_.files_travel) return;
  const absl::Status packed = travelling_->Pack(*checkpoints_);
  // Aborted: the program has made a newer one meanwhile, which is the next to go.
  if (packed.ok() || absl::IsAborted(packed)) return;
  Log("warning", absl::StrCat("checkpoints of fold ", train_.fold,
                              " do not travel to other Workers: ", packed.message()));
}

// What is expected may be there long before the program ends: should all die, it is the answer. A
// file that was written just now may not be whole.
void ProgramTrainer::SaveInterim() {
  const absl::Duration now = clock_.MonotonicNow();
  if (spec_.expect.empty() || train_.rank > 0 || stop_.has_value() || now < interim_at_) return;
  // A copy that runs into the stop would delay it.
  if (now + 2 * interim_took_ >= orders_.stop_at) return;
  interim_at_ = now + std::max(kSettled, absl::Milliseconds(train_.checkpoint_every_ms));
  const auto results = FindResults(InFold("work"), marks_, InFold("out"), spec_.expect);
  if (!results.ok() || !Unmatched(*results, spec_.expect).empty()) return;
  std::vector<ResultFile> answer = Matched(*results, spec_.expect);
  int64_t newest = 0;
  for (const ResultFile& file : answer) newest = std::max(newest, file.modified_ns);
  if (newest <= interim_newest_ || newest > absl::ToUnixNanos(clock_.WallNow() - kSettled)) return;
  if (rows_ != nullptr) {
    interim_newest_ = newest;
    SaveInterimRows(answer);
    interim_took_ = clock_.MonotonicNow() - now;
    interim_at_ = std::max(interim_at_, now + kPause * interim_took_);
    return;
  }
  std::string wrong;
  RemoveUnsound(answer, wrong);
  if (!Unmatched(answer, spec_.expect).empty()) {
    interim_newest_ = newest;
    return Log("warning",
               absl::StrCat("fold ", train_.fold, ": what is there does not count yet: ", wrong));
  }
  const bool copied = CopyResults(answer, ResultsFolder()).ok();
  interim_took_ = clock_.MonotonicNow() - now;
  interim_at_ = std::max(interim_at_, now + kPause * interim_took_);
  if (!copied) return;
  interim_newest_ = newest;
  rank_protocol::FoldSaved saved = Saved();
  if (WriteResults(answer, saved.oof_sha256).ok()) sink_.Send(saved);
}

std::string ProgramTrainer::ResultsFolder() const {
  const std::string all = ProgramResultsDir(train_.state_dir, train_.job, spec_.results);
  return spec_.folds > 1 ? absl::StrCat(all, "/fold-", train_.fold) : all;
}

rank_protocol::FoldSaved ProgramTrainer::Saved() const {
  rank_protocol::FoldSaved saved;
  saved.attempt = train_.attempt;
  saved.fold = train_.fold;
  saved.epochs_done = saved.best_epoch = done_;
  saved.trial = train_.trial;
  saved.seed = static_cast<int>(train_.seed);
  saved.score = answers_.has_value() ? answers_->score : metric_.value_or(kNotTold);
  saved.oof = absl::StrCat("attempts/", train_.attempt, "/", kResultsFile);
  return saved;
}

absl::Status ProgramTrainer::SaveAnswer(StopCause cause, bool complete, bool last) {
  const absl::Duration began = clock_.MonotonicNow();
  ASSIGN_OR_RETURN(std::vector<ResultFile> results, Results());
  std::string wrong;
  RemoveUnsound(results, wrong);
  const std::vector<std::string> unmatched = Unmatched(results, spec_.expect);
  if (!unmatched.empty()) {
    const std::string missing = wrong.empty()
                                    ? absl::StrCat("no file, or only an empty one, matches '",
                                                   absl::StrJoin(unmatched, "', '"), "'")
                                    : wrong;
    if (complete) {
      return UserError(absl::StrCat("run.expect: ", missing, wrong.empty() ? Tail() : ""));
    }
    return OutOfTimeError(absl::StrCat("stopped before its answer was there: ", missing));
  }
  if (!complete && spec_.expect.empty() && results.empty()) {
    return OutOfTimeError("stopped before it had left any file");
  }
  if (!wrong.empty()) Log("warning", absl::StrCat("left out of the answer: ", wrong));
  RETURN_IF_ERROR(StorageError(CopyResults(results, ResultsFolder())));
  rank_protocol::FoldSaved saved = Saved();
  // The answer is where the user wants it; this is a record of it.
  if (const absl::Status told = WriteResults(results, saved.oof_sha256); !told.ok()) {
    Log("warning", absl::StrCat("what the program left is not recorded: ", told.message()));
  }
  saved.complete = complete;
  saved.last = last;
  saved.stopped_by = cause;
  if (complete) saved.epochs_done = saved.best_epoch = Epochs();
  saved.predict_s = absl::ToDoubleSeconds(clock_.MonotonicNow() - began);
  sink_.Send(saved);
  if (!last) return absl::OkStatus();
  // No other start will need it, and it may be large.
  std::error_code ignored;
  for (const std::string& name : {std::string("work"), checkpoints_->LastCopy()}) {
    if (!name.empty()) fs::remove_all(InFold(name), ignored);
  }
  travelling_->RemovePacks();
  return absl::OkStatus();
}

// ---- its answer for rows ----------------------------------------------------

// Whether the files are valid predictions, which count from then on.
bool ProgramTrainer::TakeRows(const std::vector<ResultFile>& results, absl::Status& wrong) {
  absl::StatusOr<FoldAnswers> answers = rows_->Read(results, sample_);
  wrong = answers.status();
  if (answers.ok()) answers_ = *std::move(answers);
  return answers_.has_value() && wrong.ok();
}

void ProgramTrainer::SaveInterimRows(const std::vector<ResultFile>& results) {
  absl::Status wrong;
  if (!TakeRows(results, wrong)) {
    return Log("warning", absl::StrCat("fold ", train_.fold, ": predictions that are there while ",
                                       "the program runs do not count: ", wrong.message()));
  }
  SendInterimRows();
}

void ProgramTrainer::SendInterimRows() {
  saver_->Start(Saved(), answers_->oof, {answers_->test, "", ""});
}

// What was valid before is a member of the ensemble, however the Attempt ends.
void ProgramTrainer::KeepRows() {
  writer_.Wait(kLongestWrite);
  SendInterimRows();
  writer_.Wait(kLongestWrite);
}

void ProgramTrainer::RescueRows() {
  absl::Status wrong;
  const auto results = Results();
  if (results.ok()) TakeRows(*results, wrong);
  if (!answers_.has_value()) return;
  KeepRows();
  Log("warning", absl::StrCat("fold ", train_.fold, ": the program failed, but left predictions"));
}

absl::Status ProgramTrainer::SaveRows(StopCause cause, bool complete) {
  const absl::Duration began = clock_.MonotonicNow();
  absl::Status wrong;
  ASSIGN_OR_RETURN(std::vector<ResultFile> results, Results());
  TakeRows(results, wrong);
  // Without one of the named checkpoints there is nothing to predict with.
  const bool able = spec_.checkpoints.empty() || checkpoints_->Any();
  if (!complete && stop_.has_value() && !user_.predict.empty() && able && !setting_up_) {
    RunPredict();
    ASSIGN_OR_RETURN(results, Results());
    TakeRows(results, wrong);
  }
  const absl::Status failed =
      complete ? UserError(absl::StrCat(wrong.message(), Tail()))
               : OutOfTimeError(
                     absl::StrCat("stopped before its predictions were there: ", wrong.message()));
  if (!answers_.has_value()) return failed;
  if (complete && !wrong.ok()) {
    KeepRows();
    return failed;
  }
  rank_protocol::FoldSaved saved = Saved();
  saved.complete = complete;
  saved.last = true;
  saved.stopped_by = cause;
  if (complete) saved.epochs_done = saved.best_epoch = Epochs();
  saved.predict_s = absl::ToDoubleSeconds(clock_.MonotonicNow() - began);
  RETURN_IF_ERROR(saver_->SaveLast(std::move(saved), answers_->oof, {answers_->test, "", ""}));
  std::error_code ignored;
  for (const std::string& name :
       {std::string("work"), std::string(kDataFolder), checkpoints_->LastCopy()}) {
    if (!name.empty()) fs::remove_all(InFold(name), ignored);
  }
  travelling_->RemovePacks();
  if (!wrong.ok()) {
    Log("warning",
        absl::StrCat("fold ", train_.fold, " answers with earlier predictions: ", wrong.message()));
  }
  return absl::OkStatus();
}

// Lists the files, and what the program took.
absl::Status ProgramTrainer::WriteResults(const std::vector<ResultFile>& results,
                                          std::string& sha256) const {
  nlohmann::json files = nlohmann::json::array();
  for (const ResultFile& file : results) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}});
  }
  nlohmann::json all = {{"command", Command(spec_.command)},
                        {"code_sha256", DigestOfCode(fold_dir_)},
                        {"files", files},
                        {"start", try_ + 1},
                        {"seconds", absl::ToDoubleSeconds(clock_.MonotonicNow() - began_)}};
  if (program_->end().has_value()) {
    const KeeperReport& end = *program_->end();
    all.update({
        {"exit_status", WIFEXITED(end.wait_status) ? WEXITSTATUS(end.wait_status) : -1},
        {"signal", WIFSIGNALED(end.wait_status) ? WTERMSIG(end.wait_status) : 0},
        {"cpu_seconds", end.cpu_s},
        {"peak_memory_bytes", end.peak_bytes},
        {"left_behind", end.left_behind},
    });
  }
  const std::string text = all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  sha256 = Sha256Hex(text);
  return WriteFileDurably(absl::StrCat(train_.state_dir, "/",
                                       AttemptDir(train_.job, train_.attempt), "/", kResultsFile),
                          text);
}

}  // namespace traind
