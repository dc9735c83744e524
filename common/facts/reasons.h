// Why work is stopped, how it ends and which rule changes it, as values that all processes share.
// Threads: everything here is safe to call from any thread.
#pragma once

#include <cstdint>

#include "common/facts/field.h"

namespace traind {

// Why an Attempt ended. The numbers are those of proto/job.proto.
enum class AttemptEndReason {
  kNone = 0,
  kCompleted = 1,
  kStoppedInTime = 2,
  kFinishedByUser = 3,
  kCancelledByUser = 4,
  kDataError = 5,
  kUserError = 6,
  kDiverged = 7,
  kOutOfMemory = 8,
  kStorageFull = 9,
  kRankDied = 10,
  kWorkerLost = 11,
  kCollectiveTimeout = 12,
  kHung = 13,
  kDeadline = 14,
  kShutdown = 15,
  kStale = 16,
  kInternal = 17,
  kPreempted = 18,
};

// Why an Attempt is told to stop. The numbers are those of proto/worker_service.proto.
enum class StopReason {
  kNone = 0,          // not told: a person who drives a Rank by hand
  kStale = 1,         // the Attempt is over, or was never traind's
  kUserFinished = 2,  // the user wants the answer now
  kUserCancelled = 3,
  kUserPaused = 4,
  kTime = 5,   // its time is up
  kQuota = 6,  // nothing is left of a quota
  kJobOver = 7,
  kShutdown = 8,    // traind or the Worker stops
  kMoved = 9,       // its Worker is drained; it goes on elsewhere
  kPreempted = 10,  // a Job of a higher priority gets its slots; it goes on later
};

// Why the training of a fold ended.
enum class StopCause : int64_t { kNone, kEpochs, kPatience, kTime, kUser };
// kUser where a person wants the stop, else kTime: traind's rules act for the clock.
StopCause CauseOf(StopReason reason);

// The rule by which a Decision changes a Plan or a task. B2 to B9 are those of docs/DESIGN.md.
// Kept and sent by name, so that the order of the enumerators is free.
enum class DecisionRule {
  kOther,  // of a version that has more rules
  kB2,
  kB3,
  kB4,
  kB5,
  kB7,
  kB8,
  kB9,
  kRetry,
  kUser,
  kQuota,
  kCache,
  kFrom,
  kAfter,
  kPredict,
  kPrecision,
  kThreads,
  kMemory,
  kBatch,
  kLoading,
  kPretrained,
  kFreeze,
  kLearningRate,
  kPreempt,
};

// COMPLETED, RANK_DIED: the names of proto/job.proto without their prefix.
const char* Name(AttemptEndReason reason);
// kInternal where there is no such reason.
AttemptEndReason AttemptEndReasonByName(absl::string_view name);
// "", epochs, patience, time, user.
const char* Name(StopCause cause);
const char* Name(StopReason reason);
// B2, retry: as users read it.
const char* Name(DecisionRule rule);
// kOther where there is no such rule.
DecisionRule DecisionRuleByName(absl::string_view name);

const EnumNames& NamesOf(AttemptEndReason);
const EnumNames& NamesOf(StopReason);
const EnumNames& NamesOf(StopCause);
const EnumNames& NamesOf(DecisionRule);

}  // namespace traind
