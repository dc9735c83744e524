// The checks of Commit, which are the same for every store.
#pragma once

#include <absl/status/status.h>

#include "server/store/store.h"

namespace traind {

// Checks that the change keeps a Job's rules: a terminal Job stays, its version grows, its history
// only gets longer, and new members and checkpoints pass the fence below. before: the stored Job,
// or null if there is none. Errors: Aborted.
absl::Status CheckChange(const Job* before, const Job& after);

// Fencing: the checkpoint's Attempt is the task's current one, or was so during this turn. before:
// null for a new Job; after: null if the turn does not change the Job. REQUIRES: one of them is not
// null. Errors: Aborted.
absl::Status CheckCheckpoint(const Job* before, const Job* after, const Checkpoint& checkpoint);

// Checks that the highest Attempt number does not decrease. Errors: Aborted.
absl::Status CheckLastAttempt(int64_t stored, int64_t committed);

}  // namespace traind
