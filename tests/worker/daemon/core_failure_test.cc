// Ranks and prepares that die, hang or fail.
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
