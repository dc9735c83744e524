#include "server/loop/found_on_disk.h"

#include <utility>

#include "common/publish/publisher.h"
#include "server/reuse/checkpoint_files.h"

namespace traind {

void AddStanding(const std::string& state_dir, const std::string& job, std::vector<Event>* events) {
  auto standing = ReadStandingPrediction(state_dir, job);
  if (standing.ok()) events->push_back(Published{job, std::move(standing), /*unasked=*/true});
}

void AddCheckpoints(const std::string& state_dir, const Job& job, std::vector<Event>* events,
                    std::vector<UnreadCheckpoints>* unread) {
  for (const Task& task : job.tasks) {
    if (task.kind != TaskKind::kTrain || IsTerminal(task.state)) continue;
    for (const Attempt& attempt : job.attempts) {
      if (attempt.id != task.attempt || attempt.ended_at != absl::InfiniteFuture()) continue;
      const bool told = task.checkpoint && task.checkpoint->attempt == attempt.id;
      auto found =
          FindSavedCheckpoint(state_dir, job.id, attempt.id,
                              /*after=*/told ? task.checkpoint->step : 0, DataCheck::kSize);
      if (!found) continue;
      const bool replaces = task.checkpoint && !told;
      if (replaces) {
        unread->push_back({job.id, attempt.id});
      } else {
        events->push_back(CheckpointFound{attempt.id, *std::move(found)});
      }
    }
  }
}

std::optional<CheckpointFound> ReadCheckpoints(const std::string& state_dir,
                                               const UnreadCheckpoints& unread) {
  auto found =
      FindSavedCheckpoint(state_dir, unread.job, unread.attempt, /*after=*/0, DataCheck::kDigest);
  if (!found) return std::nullopt;
  return CheckpointFound{unread.attempt, *std::move(found)};
}

}  // namespace traind
