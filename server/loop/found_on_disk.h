// What lies in the state folder, because Workers and Ranks have gone on while nobody heard them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/control/events.h"

namespace traind {

// Adds the Job's Prediction that stands, if there is one.
void AddStanding(const std::string& state_dir, const std::string& job, std::vector<Event>* events);

// An Attempt whose checkpoints are to be read before one of them counts.
struct UnreadCheckpoints {
  std::string job;
  int64_t attempt = 0;
};

// Adds, for each Attempt that trains a fold of the Job, its newest checkpoint that traind has not
// heard of, if its manifest is sound and its data have the right size. The data are not read, so
// that a start does not take minutes: the Rank that resumes reads them, and goes back to the one
// before in the same folder. Where the fold has a checkpoint of an earlier Attempt, the Rank would
// not find that one any more; then the Attempt is added to `unread` instead.
void AddCheckpoints(const std::string& state_dir, const Job& job, std::vector<Event>* events,
                    std::vector<UnreadCheckpoints>* unread);

// Returns the Attempt's newest checkpoint whose data fit their digest; nullopt: there is none.
// Reads the data.
std::optional<CheckpointFound> ReadCheckpoints(const std::string& state_dir,
                                               const UnreadCheckpoints& unread);

}  // namespace traind
