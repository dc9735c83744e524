// Ranks and prepares that die, hang or fail.
#include <gmock/gmock.h>

#include "tests/worker/daemon/worker_core_harness.h"

namespace traind::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(CoreTest, TheDeathOfOneRankEndsItsGangAtOnce) {
  StartTraining(Train(7, {0, 1}));
  Die(2);
  EXPECT_THAT(killed_, ElementsAre(1));
  EXPECT_THAT(Ends(), IsEmpty()) << "while one of it lives";
  DieKilled();
  EXPECT_THAT(Ends(), ElementsAre("7 RANK_DIED"));
  EXPECT_EQ(LastMessage(), "rank 1 died: signal 9 (Killed)");
}

TEST_F(CoreTest, TheRankThatDiedTakesTheBlameForTheEchoInItsPeers) {
  StartTraining(Train(7, {0, 1}));
  Say(1, rp::Failed{7, AttemptEndReason::kCollectiveTimeout, "connection closed by peer"});
  EXPECT_THAT(killed_, IsEmpty());
  now_ += absl::Milliseconds(50);
  Die(2, {ExitStatus::kExited, 134, "out of luck"});
  DieKilled();
  EXPECT_THAT(Ends(), ElementsAre("7 RANK_DIED"));
  EXPECT_EQ(LastMessage(), "rank 1 died: exit status 134; last said: out of luck");
}

TEST_F(CoreTest, AnEchoWithoutADeathStandsByItself) {
  StartTraining(Train(7, {0, 1}));
  Say(1, rp::Failed{7, AttemptEndReason::kCollectiveTimeout, "timed out"});
  RunUntil(now_ + absl::Seconds(1));
  DieKilled();
  EXPECT_THAT(Ends(), ElementsAre("7 COLLECTIVE_TIMEOUT"));
  EXPECT_EQ(LastMessage(), "rank 0: timed out");
}

TEST_F(CoreTest, AFailureIsReportedAsTheRankSaysIt) {
  StartTraining(Train(7));
  Say(1, rp::Failed{7, AttemptEndReason::kDiverged, "loss is NaN at step 3"});
  DieKilled();
  EXPECT_THAT(Ends(), ElementsAre("7 DIVERGED"));
  EXPECT_EQ(LastMessage(), "loss is NaN at step 3");
}

TEST_F(CoreTest, AKilledProcessThatDoesNotDieIsNotWaitedForLong) {
  StartTraining(Train(7));
  core_->Stop(7, StopMode::kAbort, StopReason::kStale, "over", now_);
  Collect();
  EXPECT_THAT(Ends(), IsEmpty());
  RunUntil(now_ + absl::Seconds(2));
  EXPECT_THAT(Ends(), ElementsAre("7 STALE"));
}

TEST_F(CoreTest, ASilentRankIsHung) {
  StartTraining(Train(7));
  Say(1, About<rp::Started>(7));
  Say(1, About<rp::Progress>(7));
  RunUntil(now_ + absl::Seconds(29));
  EXPECT_THAT(killed_, IsEmpty());
  Say(1, About<rp::Progress>(7));
  RunUntil(now_ + absl::Seconds(29));
  EXPECT_THAT(killed_, IsEmpty());
  RunUntil(now_ + absl::Seconds(1));
  DieKilled();
  EXPECT_THAT(Ends(), ElementsAre("7 HUNG"));
  EXPECT_EQ(LastMessage(), "rank 0 said nothing for 30s");
}

TEST_F(CoreTest, ARankThatReadsForLongIsGivenTimeAndMaySaySo) {
  StartTraining(Train(7));
  RunUntil(now_ + absl::Seconds(59));
  Say(1, rp::LogText{"info", "reading"});
  RunUntil(now_ + absl::Seconds(59));
  EXPECT_THAT(killed_, IsEmpty());
  RunUntil(now_ + absl::Seconds(1));
  DieKilled();
  EXPECT_THAT(Ends(), ElementsAre("7 HUNG"));
}

TEST_F(CoreTest, ARankThatWorksBeforeItsFirstStepIsNotHung) {
  StartTraining(Train(7));
  EXPECT_THAT(core_->Watched(), ElementsAre(1));
  for (int i = 0; i < 5; ++i) {
    RunUntil(now_ + absl::Seconds(59));
    core_->Worked(1, now_);
  }
  EXPECT_THAT(killed_, IsEmpty());
  Say(1, About<rp::Started>(7));
  // From now on only what it says counts: a loop without end is work, too.
  EXPECT_THAT(core_->Watched(), IsEmpty());
  core_->Worked(1, now_);
  RunUntil(now_ + absl::Seconds(20));
  core_->Worked(1, now_);
  RunUntil(now_ + absl::Seconds(10));
  DieKilled();
  EXPECT_THAT(Ends(), ElementsAre("7 HUNG"));
}

// Whoever waits for rank 0 may do so busily.
TEST_F(CoreTest, TheFirstRankOfAGangIsHungThoughTheOtherIsBusy) {
  StartTraining(Train(7, {0, 1}));
  for (int i = 0; i < 9; ++i) {
    RunUntil(now_ + absl::Seconds(59));
    core_->Worked(2, now_);
  }
  EXPECT_THAT(killed_, IsEmpty()) << "it may read the table";
  for (int i = 0; i < 4; ++i) {
    RunUntil(now_ + absl::Seconds(59));
    core_->Worked(2, now_);
  }
  DieKilled();
  EXPECT_THAT(Ends(), ElementsAre("7 HUNG"));
}

TEST_F(CoreTest, APrepareThatStallsHoldsNoOther) {
  for (const int64_t attempt : {1, 2, 3, 4}) Start(Prepare(attempt, absl::InfiniteDuration()));
  EXPECT_EQ(spawned_.size(), 2u);
  Tick(absl::Seconds(9));
  EXPECT_EQ(spawned_.size(), 2u);
  core_->Worked(2, now_);
  Tick(absl::Seconds(1));
  EXPECT_EQ(spawned_.size(), 3u) << "the first has done nothing for ten seconds";
  core_->Worked(2, now_);
  core_->Worked(3, now_);
  Tick(absl::Seconds(9));
  EXPECT_EQ(spawned_.size(), 3u);
}

TEST_F(CoreTest, APrepareThatHangsEnds) {
  Start(Prepare(1, absl::InfiniteDuration()));
  RunUntil(now_ + absl::Seconds(179));
  EXPECT_THAT(Ends(), IsEmpty());
  core_->Worked(1, now_);
  RunUntil(now_ + absl::Seconds(179));
  EXPECT_THAT(Ends(), IsEmpty());
  RunUntil(now_ + absl::Seconds(1));
  DieKilled();
  EXPECT_THAT(Ends(), ElementsAre("1 HUNG"));
  EXPECT_EQ(LastMessage(), "trainprep did nothing for 3m");
}

TEST_F(CoreTest, QuestionsOfARankThatDiesAreGivenBackAtOnce) {
  TaskStart serve = Prepare(7, absl::InfiniteDuration());
  serve.kind = TaskKind::kServe;
  StartTraining(serve);
  for (const uint64_t request : {1u, 2u, 3u}) {
    rp::Rows rows;
    rows.attempt = 7;
    rows.request = request;
    core_->Ask(rows);
  }
  rp::Answered part;
  part.attempt = 7;
  part.request = 1;
  Say(1, part);
  part.request = 2;
  part.more = true;
  Say(1, part);
  ASSERT_EQ(answers_.size(), 2u);
  answers_.clear();
  Die(1);
  ASSERT_EQ(answers_.size(), 2u) << "the first has its answer, the second a part of it";
  for (size_t i = 0; i < answers_.size(); ++i) {
    EXPECT_EQ(answers_[i].request, i + 2);
    EXPECT_EQ(answers_[i].code, absl::StrCat(static_cast<int>(absl::StatusCode::kAborted)));
  }
}

TEST_F(CoreTest, ARankThatIsNeverReadyIsGivenUp) {
  Start(Train(7));
  RunUntil(now_ + absl::Seconds(61));
  EXPECT_THAT(killed_, ElementsAre(1));
  EXPECT_THAT(Ends(), ElementsAre("7 RANK_DIED"));
  EXPECT_EQ(LastMessage(), "rank 0 was not ready within 1m");
}

TEST_F(CoreTest, AProgramThatDoesNotStartIsReportedWithItsReason) {
  Start(Train(7));
  Die(1, {ExitStatus::kNotStarted, 2, ""});
  EXPECT_THAT(Ends(), ElementsAre("7 RANK_DIED"));
  EXPECT_EQ(LastMessage(), "rank 0 died: cannot start: No such file or directory");
}

TEST_F(CoreTest, WordsAboutAnotherAttemptAreIgnored) {
  StartTraining(Train(7));
  Say(1, About<rp::Finished>(6));
  Say(1, Fold(6, 0, true));
  EXPECT_THAT(reports_, IsEmpty());
}

TEST_F(CoreTest, APrepareThatDiesIsNamed) {
  Start(Prepare(1, absl::InfiniteDuration()));
  Die(1, {ExitStatus::kSignalled, 11, ""});
  EXPECT_THAT(Ends(), ElementsAre("1 RANK_DIED"));
  EXPECT_EQ(LastMessage(), "trainprep died: signal 11 (Segmentation fault)");
}

TEST_F(CoreTest, APrepareThatDoesNotEndAfterItsLastWordIsKilled) {
  Start(Prepare(1, absl::InfiniteDuration()));
  Say(1, About<rp::Finished>(1));
  EXPECT_THAT(Ends(), ElementsAre("1 COMPLETED"));
  RunUntil(now_ + absl::Seconds(3));
  EXPECT_THAT(killed_, ElementsAre(1));
}

}  // namespace
}  // namespace traind::worker
