// Keeps the weights that a Job starts from, and tries them before anything is trained.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <string>

namespace traind {

struct PretrainedCheck {
  std::string program;    // trainrank
  std::string state_dir;  // the Job's folder is there, with its folds and tokenizers
  std::string job;
  std::string table;  // of the cache, relative
  absl::string_view spec_json;
  std::string file, sha256;  // model.pretrained's
};

// Copies the file to its place in the cache, if it is not there, and runs the program on it, in
// a process of its own. Returns what the program tells of what it took; "" where it did not
// come back within `patience`: each fold finds out itself then.
// Errors: UserError(): the file has changed since it was submitted, or what is wrong
// with it or with its map, or the program ended without a word; those of MappedFile::Open and
// WriteFileDurably; of starting the program.
absl::StatusOr<std::string> TakePretrained(const PretrainedCheck& check, absl::Duration patience);

}  // namespace traind
