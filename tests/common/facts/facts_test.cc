#include "common/facts/facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/facts/list_fields.h"
#include "tests/common/facts/field_values.h"

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

// The count is what makes a member that Fields() forgets a build error.
TEST(ListFieldsTest, MembersOfEveryTypeAreCounted) {
  struct None {};
  struct Some {
    int a;
    std::string b = "x";
    std::vector<double> c = {};
    StopCause d = StopCause::kNone;
    facts::Decision e = {};
  };
  static_assert(internal::MemberCount<None>() == 0);
  static_assert(internal::MemberCount<Some>() == 5);
  static_assert(internal::MemberCount<facts::Ended>() == 2);
}

TEST(FieldsTest, EveryFieldCanBeSetAndReadByItsName) {
  const auto ended = Shown(Filled<facts::Ended>());
  EXPECT_THAT(ended, ElementsAre(Pair("message", "text 101"), Pair("reason", "1 COMPLETED")));
  facts::Progress progress;
  EXPECT_EQ(Shown(progress).at("utilisation"), "-1");
  for (const auto& [name, value] : Shown(Filled<facts::Progress>())) {
    EXPECT_NE(value, Shown(progress).at(name)) << name;
  }
}

TEST(EnumFieldTest, UnknownNamesAndNumbersBecomeTheEnumsOwnValueForThem) {
  AttemptEndReason reason = AttemptEndReason::kCompleted;
  const EnumField field(&reason, NamesOf(reason));
  field.set_name("HUNG");
  EXPECT_EQ(reason, AttemptEndReason::kHung);
  field.set_name("nonsense");
  EXPECT_EQ(reason, AttemptEndReason::kInternal);
  for (const int number : {-1, 19, 1000}) {
    reason = AttemptEndReason::kCompleted;
    field.set_number(number);
    EXPECT_EQ(reason, AttemptEndReason::kInternal) << number;
  }
}

TEST(ReasonsTest, EveryNumberHasItsNameAndBack) {
  for (int number = 0; number < NamesOf(AttemptEndReason()).count; ++number) {
    const auto reason = static_cast<AttemptEndReason>(number);
    EXPECT_EQ(AttemptEndReasonByName(Name(reason)), reason) << Name(reason);
  }
  EXPECT_STREQ(Name(AttemptEndReason::kInternal), "INTERNAL");
  EXPECT_STREQ(Name(StopReason::kShutdown), "SHUTDOWN");
  EXPECT_STREQ(Name(StopCause::kUser), "user");
}

TEST(ReasonsTest, EveryRuleOfADecisionHasItsNameAndBack) {
  for (int number = 0; number < NamesOf(DecisionRule()).count; ++number) {
    const auto rule = static_cast<DecisionRule>(number);
    EXPECT_EQ(DecisionRuleByName(Name(rule)), rule) << Name(rule);
  }
  EXPECT_STREQ(Name(DecisionRule::kB2), "B2");
  EXPECT_STREQ(Name(DecisionRule::kB9), "B9");
  EXPECT_STREQ(Name(DecisionRule::kRetry), "retry");
  EXPECT_STREQ(Name(DecisionRule::kFrom), "from");
  EXPECT_STREQ(Name(DecisionRule::kPrecision), "precision");
  EXPECT_STREQ(Name(DecisionRule::kMemory), "memory");
  EXPECT_EQ(DecisionRuleByName("B99"), DecisionRule::kOther);
}

TEST(ReasonsTest, OnlyPeopleStopAsTheUser) {
  EXPECT_EQ(CauseOf(StopReason::kNone), StopCause::kUser);
  EXPECT_EQ(CauseOf(StopReason::kUserFinished), StopCause::kUser);
  EXPECT_EQ(CauseOf(StopReason::kUserCancelled), StopCause::kUser);
  EXPECT_EQ(CauseOf(StopReason::kUserPaused), StopCause::kUser);
  for (const StopReason reason : {StopReason::kTime, StopReason::kQuota, StopReason::kJobOver,
                                  StopReason::kStale, StopReason::kShutdown}) {
    EXPECT_EQ(CauseOf(reason), StopCause::kTime) << Name(reason);
  }
}

TEST(SignalsTest, OnlyKnownFiguresBecomeSignals) {
  facts::Progress progress;
  progress.data_wait = 0.25;
  progress.gradient_norm = 3;
  progress.peak_memory_bytes = 5000;
  const auto signals = [&progress] {
    std::map<std::string, double> all;
    for (const auto& [name, value] : facts::Signals(progress)) all[name] = value;
    return all;
  };
  EXPECT_THAT(signals(), ElementsAre(Pair("data_wait", 0.25), Pair("gradient_norm", 3),
                                     Pair("pause", 0), Pair("peak_memory_bytes", 5000)));
  progress.utilisation = 0;
  EXPECT_EQ(signals().at("utilisation"), 0);
  progress.steal = 0;
  EXPECT_EQ(signals().at("steal"), 0);
  EXPECT_EQ(signals().count("power_watts"), 0u);
  // A figure that a Progress has is a signal, or one of those named beside it in the core.
  EXPECT_EQ(facts::Signals(Filled<facts::Progress>()).size() + 6, progress.Fields().size());
}

}  // namespace
}  // namespace traind
