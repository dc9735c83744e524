// Tries a user's own model before any training.
#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <string>

#include "common/data/table/table.h"

namespace traind {

struct ScriptCheck {
  std::string program;  // trainrank
  std::string path;     // of the module
  std::string sha256;
  int64_t window = 1;
  // Whether the target's own past is an input, which adds numeric inputs.
  bool past_is_input = false;
};

// Runs the program on made-up rows of the table's shape, in a process of its own that is killed
// after `patience`.
// Errors: UserError(): the module is wrong (the message says how), the program was not
// done in time, or ended without an answer; Internal: the program cannot be started.
absl::Status CheckScript(const ScriptCheck& check, const Table& table, absl::Duration patience);

}  // namespace traind
