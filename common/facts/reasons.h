// Why work is stopped, how it ends and which rule changes it, as values that all processes share.
// Threads: everything here is safe to call from any thread.
#pragma once

#include <cstdint>

#include "common/facts/field.h"
#include "proto/plain/job_enums.h"
#include "proto/plain/worker_service_enums.h"

namespace traind {

// These come from the .proto files, where each value is explained.
using plain::AttemptEndReason;
using plain::StopReason;
using StopMode = plain::StopAttemptMode;
using TaskKind = plain::StartTaskKind;

// The only task of a Job that trains nothing. It takes a Rank and no slot.
inline bool UsesModels(TaskKind kind) {
  return kind == TaskKind::kPredict || kind == TaskKind::kServe;
}

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

}  // namespace traind

// Found by argument, so they stand where their enums do.
namespace traind::plain {
const EnumNames& NamesOf(AttemptEndReason);
const EnumNames& NamesOf(StopReason);
}  // namespace traind::plain

namespace traind {
using plain::NamesOf;
const EnumNames& NamesOf(StopCause);
const EnumNames& NamesOf(DecisionRule);

}  // namespace traind
