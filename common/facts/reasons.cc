#include "common/facts/reasons.h"

#include <iterator>

namespace traind {
namespace {

constexpr const char* kDecisionRules[] = {"other",
                                          "B2",
                                          "B3",
                                          "B4",
                                          "B5",
                                          "B7",
                                          "B8",
                                          "B9",
                                          "retry",
                                          "user",
                                          "quota",
                                          "cache",
                                          "from",
                                          "after",
                                          "predict",
                                          "precision",
                                          "threads",
                                          "memory",
                                          "batch",
                                          "loading",
                                          "pretrained",
                                          "freeze",
                                          "learning_rate",
                                          "preempt"};
constexpr const char* kStopCauses[] = {"", "epochs", "patience", "time", "user"};

template <class E>
const char* NameIn(E value) {
  return EnumField(&value, NamesOf(value)).name();
}

}  // namespace

const EnumNames& plain::NamesOf(AttemptEndReason) {
  static constexpr EnumNames kNames{kAttemptEndReasonNames, std::size(kAttemptEndReasonNames),
                                    static_cast<int>(AttemptEndReason::kInternal)};
  return kNames;
}

const EnumNames& plain::NamesOf(StopReason) {
  static constexpr EnumNames kNames{kStopReasonNames, std::size(kStopReasonNames), 0};
  return kNames;
}

const EnumNames& NamesOf(StopCause) {
  static constexpr EnumNames kNames{kStopCauses, std::size(kStopCauses), 0};
  return kNames;
}

const EnumNames& NamesOf(DecisionRule) {
  static constexpr EnumNames kNames{kDecisionRules, std::size(kDecisionRules), 0};
  static_assert(std::size(kDecisionRules) == static_cast<size_t>(DecisionRule::kPreempt) + 1);
  return kNames;
}

StopCause CauseOf(StopReason reason) {
  switch (reason) {
    case StopReason::kNone:
    case StopReason::kUserFinished:
    case StopReason::kUserCancelled:
    case StopReason::kUserPaused:
      return StopCause::kUser;
    default:
      return StopCause::kTime;
  }
}

const char* Name(AttemptEndReason reason) { return NameIn(reason); }
const char* Name(StopReason reason) { return NameIn(reason); }
const char* Name(StopCause cause) { return NameIn(cause); }
const char* Name(DecisionRule rule) { return NameIn(rule); }

AttemptEndReason AttemptEndReasonByName(absl::string_view name) {
  AttemptEndReason reason = AttemptEndReason::kInternal;
  EnumField(&reason, NamesOf(reason)).set_name(name);
  return reason;
}

DecisionRule DecisionRuleByName(absl::string_view name) {
  DecisionRule rule = DecisionRule::kOther;
  EnumField(&rule, NamesOf(rule)).set_name(name);
  return rule;
}

}  // namespace traind
