// Copies of the files that a program resumes from. A program that is killed while it writes one
// leaves half a file, and fails with it at each start; the copy is whole.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <string>
#include <vector>

#include "worker/program/work_folder.h"

namespace traind {

// The files are those of `dir`/work whose names match a pattern, and all of `dir`/checkpoints but
// those of the Python helper, which keeps two copies itself. Threads: confined to one.
class KeptCheckpoints {
 public:
  // dir: of the fold. patterns: of names relative to `dir`/work.
  KeptCheckpoints(std::string dir, std::vector<std::string> patterns);

  // Whether one of the files is there.
  bool Any() const;

  // Copies the files, unless they are as they were at the last time, or somebody has written to one
  // since `settled`, or writes to one meanwhile. Returns whether there is a new copy.
  bool Keep(absl::Time settled);

  // The folder of the last copy, relative to `dir`; empty: there is none.
  std::string LastCopy() const;

  // The newest checkpoint of the helper, likewise.
  std::string LastOfHelper() const;

  // Puts the files of the last copy in their place, if there is one. Errors: those of the file
  // system.
  absl::Status PutBack() const;

  // Moves the files to `dir`/torn and puts the last copy in their place. Returns false where there
  // is none, where the files are those that were copied, or where it was done before. Errors: those
  // of the file system.
  absl::StatusOr<bool> SetAside();

 private:
  FileMarks Find() const;  // by path in dir
  std::string InDir(absl::string_view name) const;
  // The entry of a folder with the largest number behind the prefix; empty: none.
  std::string Last(const std::string& folder, absl::string_view prefix) const;

  const std::string dir_;
  const std::vector<std::string> patterns_;
};

}  // namespace traind
