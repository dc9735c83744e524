// Epochs that are shorter than the machine's own unrest, or than those to come.
#include <gmock/gmock.h>

#include <map>
#include <string>

#include "tests/server/control/control_core_harness.h"

namespace traind {
namespace {

TEST(PaceTest, ManyShortEpochsAreMeasuredTogetherSoThatThePlanHoldsStill) {
  CoreHarness h;
  h.Attach("w", 1);
  Job job = CoreHarness::MakeJob("a", 2);
  job.spec.budget = absl::Seconds(20);
  job.spec.epochs = 100'000;
  const std::string id = h.SubmitJob(job);
  h.PrepareJob(id);
  const int64_t attempt = h.AttemptOf(id, 1);
  h.Say(attempt, CoreHarness::Started(7));
  h.Say(attempt, CoreHarness::Probe(0.0001));
  int64_t sequence = 1000;
  for (int epoch = 1; epoch <= 4000; ++epoch) {
    h.now += absl::Milliseconds(1);
    facts::Epoch done;
    done.epoch = epoch;
    done.step = 7 * epoch;
    // Every third one was disturbed.
    done.epoch_s = epoch % 3 == 0 ? 0.002 : 0.0005;
    h.Step({WorkerFact{"w", h.session, ++sequence, attempt, done}});
    if (h.TaskOf(id, 1).state != TaskState::kRunning) break;
    ASSERT_GE(h.Stored(id).plans.back().epochs, epoch) << "it would have ended there";
  }
  // Cut to what fits, and corrected a few times while the first second goes by.
  EXPECT_LE(h.Stored(id).decisions.size(), 8u);
}

// The probe counts on steps of the whole network, 100 of 0.1 s an epoch.
TEST(PaceTest, EpochsThatTrainTheHeadAloneSayNothingOfThoseToCome) {
  for (const bool head_only : {true, false}) {
    CoreHarness h;
    h.Attach("w", 1);
    Job job = CoreHarness::MakeJob("a", 2);
    job.spec.budget = absl::Seconds(60);
    const std::string id = h.SubmitJob(job);
    h.PrepareJob(id);
    const int64_t attempt = h.AttemptOf(id, 1);
    h.Say(attempt, CoreHarness::Started(100));
    h.Say(attempt, CoreHarness::Probe(0.1));
    const int64_t by_probe = h.Stored(id).plans.back().epochs;
    for (int epoch = 1; epoch <= 2; ++epoch) {
      h.now += absl::Milliseconds(20);
      facts::Epoch done;
      done.epoch = epoch;
      done.step = 100 * epoch;
      done.epoch_s = 0.02;
      done.head_only = head_only;
      h.Say(attempt, done);
    }
    const int64_t by_epochs = h.Stored(id).plans.back().epochs;
    EXPECT_EQ(by_epochs > by_probe, !head_only) << by_probe << " epochs, then " << by_epochs;
  }
}

// Its Rank was at work long before traind could hear of it.
TEST(PaceTest, AStartThatIsToldLateSaysNothingOfHowLongStartsTake) {
  for (const bool crash : {true, false}) {
    CoreHarness h;
    h.Attach("w", 1);
    Job job = CoreHarness::MakeJob("a", 5);
    job.spec.budget = absl::Seconds(30);
    const std::string id = h.SubmitJob(job);
    h.PrepareJob(id);
    const int64_t attempt = h.AttemptOf(id, 1);
    if (crash) {
      h.Crash();
    } else {
      h.Step({WorkerDetached{"w", h.session}});
    }
    h.Wait(absl::Seconds(5));
    h.Attach("w", 1, {attempt});
    h.Say(attempt, CoreHarness::Started());
    h.Say(attempt, CoreHarness::Probe(0.001));
    for (int epoch = 1; epoch <= 20; ++epoch) {
      facts::Epoch done;
      done.epoch = epoch;
      done.step = 100 * epoch;
      done.epoch_s = 0.1;
      h.Say(attempt, done);
    }
    h.FinishFold(id, 0);
    h.Wait(absl::Seconds(1));
    EXPECT_TRUE(h.Stored(id).decisions.empty()) << h.Stored(id).decisions.back().cause;
    EXPECT_EQ(h.TaskOf(id, 2).state, TaskState::kRunning);
  }
}

// Jobs with one fold each that could use all of a minute, on one slot.
class TurnsTest : public testing::Test {
 protected:
  TurnsTest() { h_.Attach("w", 1); }

  std::string Submit(const std::string& name, int priority = 0,
                     absl::Duration budget = absl::Seconds(60)) {
    Job job = CoreHarness::MakeJob(name, 1);
    job.spec.epochs = 100'000;
    job.spec.priority = priority;
    job.spec.budget = budget;
    const std::string id = h_.SubmitJob(job);
    h_.PrepareJob(id);
    return id;
  }
  void Measure(const std::string& job) {
    h_.Say(h_.AttemptOf(job, 1), CoreHarness::Started());
    h_.Say(h_.AttemptOf(job, 1), CoreHarness::Probe(0.001));
    Train(job, 3);
  }
  // So many epochs of 0.1 s. Returns the last time at which the fold was told to stop, from its
  // Job's acceptance on.
  absl::Duration Train(const std::string& job, int epochs) {
    for (int i = 0; i < epochs; ++i) {
      facts::Epoch done;
      done.epoch = ++epoch_[job];
      done.step = static_cast<int64_t>(100 * done.epoch);
      done.epoch_s = 0.1;
      Note(job, h_.Wait(absl::Milliseconds(100)));
      Note(job, h_.Say(h_.AttemptOf(job, 1), done));
    }
    return stop_[job] - h_.Stored(job).accepted_at;
  }
  void Note(const std::string& job, const Turn& turn) {
    for (const ReplanCommand& replan : turn.replans) {
      if (replan.attempt == h_.AttemptOf(job, 1)) stop_[job] = replan.stop_at;
    }
  }
  int64_t Epochs(const std::string& job) { return h_.Stored(job).plans.back().epochs; }

  CoreHarness h_;
  std::map<std::string, int> epoch_;
  std::map<std::string, absl::Time> stop_;
};

TEST_F(TurnsTest, AFoldLeavesTimeForJobsThatWaitForTheirFirstOne) {
  const std::string first = Submit("a");
  Measure(first);
  const int64_t alone = Epochs(first);
  Submit("b");
  Submit("c");
  const absl::Duration stop = Train(first, 20);
  EXPECT_GT(stop, absl::Seconds(10));
  EXPECT_LT(stop, absl::Seconds(21));  // a third of what there is for training
  EXPECT_LT(Epochs(first), alone / 2);
  EXPECT_GT(Epochs(first), alone / 5);
  EXPECT_THAT(h_.Stored(first).decisions.back().cause,
              testing::HasSubstr("until others have their turn"));
}

TEST_F(TurnsTest, TheNextOneGetsAsMuch) {
  const std::string first = Submit("a");
  Measure(first);
  const std::string second = Submit("b");
  const std::string third = Submit("c");
  Train(first, 150);
  h_.FinishFold(first, 0);
  Measure(second);
  const absl::Duration stop = Train(second, 20);
  EXPECT_GT(stop, absl::Seconds(30));
  EXPECT_LT(stop, absl::Seconds(41));
  EXPECT_EQ(h_.TaskOf(third, 1).state, TaskState::kPending);
}

TEST_F(TurnsTest, AJobWithoutAModelComesBeforeFurtherFoldsOfOthers) {
  Job two = CoreHarness::MakeJob("a", 2);
  two.spec.epochs = 100;
  const std::string first = h_.SubmitJob(two);
  h_.PrepareJob(first);
  Measure(first);
  const std::string second = Submit("b");
  Train(first, 97);
  h_.FinishFold(first, 0);
  EXPECT_EQ(h_.TaskOf(first, 2).state, TaskState::kPending);
  EXPECT_EQ(h_.TaskOf(second, 1).state, TaskState::kRunning);
}

TEST_F(TurnsTest, WhoeverHasALowerPriorityOrALaterDeadlineWaits) {
  const std::string first = Submit("a", /*priority=*/1);
  Measure(first);
  const int64_t alone = Epochs(first);
  Submit("b", /*priority=*/0);
  Submit("c", /*priority=*/1, absl::Minutes(10));
  Train(first, 20);
  EXPECT_GE(Epochs(first), alone);
}

}  // namespace
}  // namespace traind
