// Deleting and pinning Jobs.
#include <gtest/gtest.h>

#include "tests/server/control/control_core_harness.h"

namespace traind {
namespace {

class CoreRetentionTest : public ::testing::Test {
 protected:
  CoreRetentionTest() { house.Attach("w", 1); }

  absl::Status Delete(const std::string& job) {
    std::vector<int64_t> attempts;
    for (const Attempt& attempt : house.Stored(job).attempts) attempts.push_back(attempt.id);
    const Turn turn = house.Step({DeleteJob{7, job, attempts}});
    EXPECT_EQ(turn.replies.size(), 1u);
    EXPECT_TRUE(!turn.replies[0].status.ok() || turn.mutations.durable);
    return turn.replies[0].status;
  }
  // A Job that is over, and whose Attempts have ended.
  std::string EndedJob(const std::string& request) {
    const std::string job = house.SubmitJob(CoreHarness::MakeJob(request));
    const int64_t attempt = house.AttemptOf(job, 0);
    house.CancelJob(job);
    house.Say(attempt, CoreHarness::Ended(AttemptEndReason::kCancelledByUser));
    return job;
  }
  static Job Predicting(const std::string& source) {
    Job job = CoreHarness::MakeJob("p", 0);
    job.spec.models_from = source;
    job.tasks.resize(1);
    job.tasks[0].kind = TaskKind::kPredict;
    return job;
  }
  bool IsStored(const std::string& job) { return house.store.GetJob(job).ok(); }

  CoreHarness house;
};

TEST_F(CoreRetentionTest, AJobIsDeletedOnceItIsOverAndItsAttemptsHaveEnded) {
  const std::string job = house.SubmitJob(CoreHarness::MakeJob("a"));
  EXPECT_TRUE(absl::IsFailedPrecondition(Delete(job)));
  const int64_t attempt = house.AttemptOf(job, 0);
  house.CancelJob(job);
  EXPECT_TRUE(absl::IsUnavailable(Delete(job)));  // its PREPARE still runs
  house.Say(attempt, CoreHarness::Ended(AttemptEndReason::kCancelledByUser));
  EXPECT_EQ(Delete(job), absl::OkStatus());
  EXPECT_FALSE(IsStored(job));
}

TEST_F(CoreRetentionTest, AJobThatOthersUseStaysUntilTheyAreOver) {
  const std::string source = EndedJob("a");
  const std::string user = house.SubmitJob(Predicting(source));
  EXPECT_TRUE(absl::IsFailedPrecondition(Delete(source)));
  house.Crash();
  EXPECT_TRUE(absl::IsFailedPrecondition(Delete(source)));
  house.CancelJob(user);
  EXPECT_EQ(Delete(source), absl::OkStatus());
}

// A Submit is checked against the store before the core sees it.
TEST_F(CoreRetentionTest, ASubmitThatNamesAJobDeletedMeanwhileIsRefused) {
  const std::string source = EndedJob("a");
  ASSERT_EQ(Delete(source), absl::OkStatus());
  Job goes_on = CoreHarness::MakeJob("b");
  goes_on.spec.from = source;
  const Turn turn = house.Step({Submit{7, Predicting(source)}, Submit{8, goes_on}});
  ASSERT_EQ(turn.replies.size(), 2u);
  EXPECT_TRUE(absl::IsNotFound(turn.replies[0].status));
  EXPECT_TRUE(absl::IsNotFound(turn.replies[1].status));
}

TEST_F(CoreRetentionTest, TheRequestOfADeletedJobMakesANewOne) {
  const std::string job = EndedJob("a");
  ASSERT_EQ(Delete(job), absl::OkStatus());
  Job again = CoreHarness::MakeJob("a");
  again.id = "job-again";
  const Turn turn = house.Step({Submit{7, again}});
  ASSERT_EQ(turn.replies.size(), 1u);
  EXPECT_TRUE(turn.replies[0].created);
  EXPECT_EQ(turn.replies[0].job->id, "job-again");
}

TEST_F(CoreRetentionTest, JobsArePinnedWhileTheyRunAndAfterwards) {
  const std::string running = house.SubmitJob(CoreHarness::MakeJob("b"));
  EXPECT_EQ(house.Step({Pin{7, running, true}}).replies.at(0).status, absl::OkStatus());
  EXPECT_TRUE(house.Stored(running).pinned);
  house.Crash();
  EXPECT_TRUE(house.core().FindJob(running)->pinned);
  house.CancelJob(running);
  EXPECT_TRUE(house.Stored(running).pinned);
  house.Step({Pin{7, running, false}});
  EXPECT_FALSE(house.Stored(running).pinned);
}

TEST_F(CoreRetentionTest, DamageOfAFileIsAnEventOfItsJobWhetherItIsOverOrNot) {
  const std::string running = house.SubmitJob(CoreHarness::MakeJob("b"));
  const std::string over = house.SubmitJob(CoreHarness::MakeJob("c"));
  house.CancelJob(over);
  for (const std::string& job : {running, over}) {
    house.Step({FileDamaged{job, "predictions.csv: it does not fit its digest"}});
    const auto events = house.store.GetEvents(job, 0, 100);
    ASSERT_TRUE(events.ok());
    EXPECT_EQ(events->back().kind, "damaged");
    EXPECT_EQ(events->back().detail, "predictions.csv: it does not fit its digest");
  }
  house.Step({FileDamaged{"nobody", "x"}});  // its Job was deleted, and its folder is going
}

}  // namespace
}  // namespace traind
