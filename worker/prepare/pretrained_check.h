// Keeps a copy of the weights that a Job starts from, and tries them before any training.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <string>

namespace traind {

struct PretrainedCheck {
  std::string program;    // trainrank
  std::string state_dir;  // contains the Job's folder, with its folds and tokenizers
  std::string job;
  std::string table;  // path in the cache, relative to the state folder
  absl::string_view spec_json;
  std::string file, sha256;  // of model.pretrained
};

// Copies the file into the cache, if it is not there, and runs the program on it in a process
// of its own. Returns the program's report on the weights that it used; "" if the program was
// not done within `patience`: then each fold checks the weights itself.
// Errors: UserError(): the file has changed since it was submitted, the file or its map
// is wrong (the message says how), or the program ended without an answer; those of
// MappedFile::Open and WriteFileDurably; those of starting the program.
absl::StatusOr<std::string> CheckPretrained(const PretrainedCheck& check, absl::Duration patience);

}  // namespace traind
