#include "server/domain/decision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Decision Read(DecisionRule rule, std::string from, std::string to) {
  Decision decision;
  decision.rule = rule;
  decision.from = std::move(from);
  decision.to = std::move(to);
  ReadTexts(decision);
  return decision;
}

TEST(DecisionTest, TheAttemptsOfARetryAreReadFromItsText) {
  EXPECT_EQ(AttemptsText({7}), "attempt 7");
  EXPECT_EQ(AttemptsText({7, 12}), "attempt 7, attempt 12");
  EXPECT_THAT(Read(DecisionRule::kRetry, AttemptsText({7, 12}), "start again").attempts,
              ElementsAre(7, 12));
  EXPECT_THAT(Read(DecisionRule::kRetry, "attempts", "start again").attempts, IsEmpty());
  EXPECT_THAT(Read(DecisionRule::kUser, "attempt 7", "start again").attempts, IsEmpty());
}

TEST(DecisionTest, EveryNoteOfTrialsIsReadFromItsText) {
  for (const TrialNote& note :
       {TrialNote{TrialNote::kBegun}, TrialNote{TrialNote::kFewer, 1},
        TrialNote{TrialNote::kFewer, 12}, TrialNote{TrialNote::kWorse, 1},
        TrialNote{TrialNote::kWorse, 12}, TrialNote{TrialNote::kNoGain},
        TrialNote{TrialNote::kNoneFits}, TrialNote{TrialNote::kAwaitsProposal}}) {
    const std::string text = TrialNoteText(note);
    ASSERT_NE(text, "");
    EXPECT_EQ(Read(DecisionRule::kB9, "", text).trial_note, note) << text;
    EXPECT_EQ(Read(DecisionRule::kB2, "", text).trial_note, TrialNote()) << text;
  }
}

TEST(DecisionTest, OtherTextsAreNoNotes) {
  for (const char* text : {"", "5 models", "trial x gets no more folds", "trial 2 gets no more",
                           "2 trial, and more as time allows", "no further model fits today"}) {
    EXPECT_EQ(Read(DecisionRule::kB9, "", text).trial_note, TrialNote()) << text;
  }
}

}  // namespace
}  // namespace traind
