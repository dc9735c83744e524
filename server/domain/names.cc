#include "server/domain/names.h"

namespace traind {
namespace {

template <class E, int n>
const char* NameIn(const char* const (&names)[n], E value) {
  const int place = static_cast<int>(value);
  return place >= 0 && place < n ? names[place] : "?";
}

}  // namespace

const char* Name(JobState state) { return NameIn(plain::kJobStateNames, state); }
const char* Name(JobEndReason reason) { return NameIn(plain::kJobEndReasonNames, reason); }
const char* Name(TaskState state) { return NameIn(plain::kTaskStateNames, state); }
const char* Name(PendingReason reason) { return NameIn(plain::kPendingReasonNames, reason); }

std::string WorkersText(const Attempt& attempt) {
  std::string text = attempt.worker;
  for (const GangPart& part : attempt.others) text += " and " + part.worker;
  return text;
}

std::string TaskName(TaskKind kind, int fold, int trial, int seed) {
  switch (kind) {
    case TaskKind::kPrepare:
      return "prepare";
    case TaskKind::kPredict:
      return "predict";
    case TaskKind::kServe:
      return "serve";
    case TaskKind::kTrain:
    case TaskKind::kNone:
      break;
  }
  std::string name = "fold-" + std::to_string(fold);
  if (trial > 0) name += "-trial-" + std::to_string(trial);
  if (seed > 0) name += "-seed-" + std::to_string(seed);
  return name;
}

}  // namespace traind
