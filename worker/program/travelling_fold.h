// A fold of a program that may go on on another Worker, with another state folder: what it resumes
// from is packed here, and taken there (common/transfer/program_pack.h).
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <utility>

#include "common/transfer/program_pack.h"
#include "worker/program/kept_checkpoints.h"

namespace traind {

// REQUIRES: the fold's folder is locked, but for LastAttempt(). Threads: confined to one.
class TravellingFold {
 public:
  // own: the fold, its trial and the Attempt that is to work in it. state_dir: absolute.
  TravellingFold(std::string state_dir, std::string job, ProgramPack own);

  // Makes the fold's folder what an Attempt on another Worker has left, if its pack is here and no
  // later one has worked in the folder; nothing else stays. The copies are put in their place by
  // PutBack(). Returns the number of that Attempt; 0: there was nothing to take. A process that
  // dies meanwhile leaves all to the next one. Errors: those of the file system; bytes that are no
  // pack.
  absl::StatusOr<int64_t> Take() const;

  // Puts what Take() has brought where the program looks for it. Without Take() it does nothing.
  absl::Status PutBack(const KeptCheckpoints& checkpoints) const;

  // Writes down that this Attempt works in the folder, so that older packs are not taken.
  absl::Status NoteAttempt() const;
  // The last one that was noted; 0: none (LastProgramAttempt).
  int64_t LastAttempt() const;

  // Packs the last copy, the helper's newest checkpoint and the count of starts, if one of them is
  // newer than what was packed last. Errors: those of the file system; Aborted: a file has changed.
  absl::Status Pack(const KeptCheckpoints& checkpoints);
  // Nobody will need them any more.
  void RemovePacks() const;

 private:
  std::string InDir(const std::string& name) const { return dir_ + "/" + name; }
  absl::Status Unpack(const ProgramPack& pack) const;
  absl::Status Clear(const std::string& brought) const;

  const std::string state_dir_, job_;
  const ProgramPack own_;
  const std::string dir_;  // of the fold, absolute
  std::pair<std::string, std::string> packed_;
};

}  // namespace traind
