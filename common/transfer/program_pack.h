// The pack of what a user's program resumes from: how an Attempt of its fold leaves it for the next
// one, on a Worker with another state folder. Each Attempt has one, so that a stale one changes
// nothing. Threads: all functions are safe.
#pragma once

#include <absl/strings/string_view.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace traind {

struct ProgramPack {
  int fold = 0;
  int trial = 0;
  int64_t attempt = 0;  // that has left it
};

// Its path, relative to the state folder: beside the folder of the fold.
std::string ProgramPackPath(const std::string& job, const ProgramPack& pack);

// nullopt: no pack of the Job has this path.
std::optional<ProgramPack> ProgramPackAt(absl::string_view path, const std::string& job);

// The paths of the packs of the Job that are in the state folder.
std::vector<std::string> ProgramPacksIn(const std::string& state_dir, const std::string& job);

// Removes the packs there of the same fold and trial that earlier Attempts have left.
void RemoveOlderProgramPacks(const std::string& state_dir, const std::string& job,
                             const ProgramPack& pack);

// Returns the newest pack of the fold and trial of `next` that an Attempt after `last` and before
// that of `next` has left, of files with these paths; nullopt: there is none.
std::optional<ProgramPack> NewestProgramPack(const std::vector<std::string>& paths,
                                             const std::string& job, int64_t last,
                                             const ProgramPack& next);

// The last Attempt that has worked in the folder of a program's fold; 0: none, or nobody knows. A
// pack of an earlier one would be a step back.
inline constexpr char kProgramAttemptFile[] = "attempt";  // in that folder
int64_t LastProgramAttempt(const std::string& fold_dir);

}  // namespace traind
