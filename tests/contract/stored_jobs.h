// Jobs to store, and a text of everything that is stored of a Job.
#pragma once

#include <absl/time/time.h>

#include <cstdint>
#include <string>
#include <vector>

#include "server/store/store.h"

namespace traind {

// The time of their acceptance.
inline const absl::Time kStart = absl::FromUnixMillis(1'795'000'000'123);

// A Job as intake and core make it: PREPARE and `folds` TRAIN tasks, pending.
Job NewJob(const std::string& id, int folds = 2);
// The same Job with the next version.
Job Next(const Job& job);
// A turn that changes these Jobs.
Mutations Change(std::vector<Job> jobs);
Task& Fold(Job& job, int fold);
// The Job with a running Attempt of the fold.
Job Started(const Job& job, int fold, int64_t attempt);
Job Ended(const Job& job, JobState state);
// A Job in which every stored field differs from its default.
Job FullJob();
Checkpoint CheckpointOf(int64_t attempt, int fold, int64_t step);
Member MemberOf(int64_t attempt, int fold);
MetricPoint Metric(const std::string& job, int64_t step);

// Everything that is stored, as text: equal texts mean equal values.
std::string Describe(const Job& job);
std::string Text(const Checkpoint& checkpoint);
std::string Text(const Member& member);

}  // namespace traind
