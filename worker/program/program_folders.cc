// The folders in which a user's program works.
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "common/base/disk_guard.h"
#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "worker/program/program_trainer.h"
#include "worker/task/failure.h"

namespace traind {
namespace {

constexpr absl::Duration kSlowCopy = absl::Seconds(1);  // of the folder: worth a line in the log
constexpr absl::Duration kLockPatience = absl::Seconds(5);
constexpr absl::Duration kFoldersPatience = absl::Seconds(30);

}  // namespace

// Two Attempts never work in one folder: the earlier one is about to die.
absl::Status ProgramTrainer::LockFold() {
  lock_ = open(InFold(kFoldLock).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock_ < 0) return StorageError(ErrnoStatus(errno, InFold(kFoldLock)));
  const absl::Duration until = clock_.MonotonicNow() + kLockPatience;
  while (flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    if (clock_.MonotonicNow() >= until) {
      return absl::UnavailableError("an earlier start of this fold still runs");
    }
    usleep(20'000);
  }
  return absl::OkStatus();
}

absl::Status ProgramTrainer::MakeFolders() {
  std::vector<std::string> written = spec_.expect;
  written.insert(written.end(), spec_.checkpoints.begin(), spec_.checkpoints.end());
  const absl::Duration began = clock_.MonotonicNow();
  const absl::StatusOr<int64_t> taken = travelling_->Take();
  if (!taken.ok()) {
    Log("warning", absl::StrCat("what an earlier start has left on another Worker cannot be used: ",
                                taken.status().message()));
  } else if (*taken > 0) {
    Log("info", absl::StrCat("fold ", train_.fold, " goes on with what attempt ", *taken,
                             " left on another Worker"));
  }
  ASSIGN_OR_RETURN(marks_, MakeWorkFolder(spec_.folder, fold_dir_, train_.state_dir, written));
  if (const absl::Duration took = clock_.MonotonicNow() - began; took > kSlowCopy) {
    Log("warning", absl::StrCat("copying ", marks_.size(), " files of ", spec_.folder, " took ",
                                absl::FormatDuration(absl::Trunc(took, absl::Milliseconds(100))),
                                "; .traindignore may name what the program does not need"));
  }
  for (const char* name : {"checkpoints", "out"}) RETURN_IF_ERROR(MakeDirs(InFold(name)));
  if (rows_ != nullptr) {
    RETURN_IF_ERROR(MakeDirs(InFold(kDataFolder)));
    RETURN_IF_ERROR(rows_->WriteFiles(InFold(kDataFolder)));
  }
  unlink(InFold("stop").c_str());
  if (const auto known = ReadFile(InFold("tries")); known.ok()) {
    if (!absl::SimpleAtoi(*known, &try_)) try_ = 0;
  }
  RETURN_IF_ERROR(WriteFileDurably(InFold("tries"), absl::StrCat(try_ + 1)));
  // What a set-up makes is no result, so what was brought comes behind it.
  if (!NeedsSetup()) RETURN_IF_ERROR(travelling_->PutBack(*checkpoints_));
  return travelling_->NoteAttempt();  // the other ranks wait for it
}

// The first rank makes them.
absl::Status ProgramTrainer::AwaitFolders() const {
  const absl::Duration until = clock_.MonotonicNow() + kFoldersPatience;
  while (travelling_->LastAttempt() != train_.attempt) {
    if (clock_.MonotonicNow() >= until) {
      return absl::UnavailableError("the first rank made no folder to work in");
    }
    usleep(20'000);
  }
  return absl::OkStatus();
}

}  // namespace traind
