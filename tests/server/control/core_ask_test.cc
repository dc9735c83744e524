// A search whose trials a client proposes: what it is told, and what the Job does without it.
#include <gmock/gmock.h>

#include "tests/server/control/control_core_harness.h"

namespace traind {
namespace {

using ::testing::HasSubstr;

// A Job of 2 folds with 4 trials on a Worker of one slot; it waits 5 s for a proposal.
class AskTest : public ::testing::Test {
 protected:
  void Begin(const char* method = kAskMethod, absl::Duration wait = absl::Seconds(5)) {
    h.Attach("w", 1);
    Job job = h.MakeJob("a", 2);
    job.spec.trials.assign(4, {"mlp", "mlp", 20, 5});
    job.spec.search = {method, {{"model.mlp.dropout", "uniform(0, 0.5)"}}, 3, wait};
    job.spec.trials[0].settings = SettingsOf("0.1");
    id_ = h.SubmitJob(std::move(job));
    h.PrepareJob(id_);
  }
  void Train(int task, double score = 0.9) {
    ASSERT_EQ(h.TaskOf(id_, task).state, TaskState::kRunning) << "task " << task;
    const int64_t attempt = h.AttemptOf(id_, task);
    h.Say(attempt, h.Started(10));
    for (int i = 1; i <= 5; ++i) {
      facts::Epoch epoch;
      epoch.epoch = i;
      epoch.epoch_s = 0.1;
      h.now += absl::Milliseconds(100);
      h.Say(attempt, epoch);
    }
    h.Say(attempt, h.Saved(true, true, score, 5));
    h.Say(attempt, h.Ended());
    h.Publish(id_, Quality::kFull);
  }
  // Both folds of trial 0.
  void TrainFirst() {
    ASSERT_NO_FATAL_FAILURE(Train(1));
    ASSERT_NO_FATAL_FAILURE(Train(2));
  }
  static std::shared_ptr<const Settings> SettingsOf(const std::string& dropout) {
    return std::make_shared<const Settings>(Settings{{"model.mlp.dropout", dropout}});
  }
  Reply Ask(const std::string& dropout, const std::string& request = "") {
    const Turn turn = h.Step({Propose{9, id_, request, SettingsOf(dropout)}});
    EXPECT_EQ(turn.replies.size(), 1u);
    EXPECT_TRUE(!turn.replies[0].created || turn.mutations.durable);
    return turn.replies[0];
  }
  std::string SettingOf(size_t trial) {
    const auto settings = h.Stored(id_).spec.trials[trial].settings;
    return settings == nullptr ? "" : (*settings)[0].second;
  }
  size_t Tasks() { return h.Stored(id_).tasks.size(); }

  CoreHarness h;
  std::string id_;
};

TEST_F(AskTest, AProposedTrialStartsWhenASlotIsFree) {
  Begin();
  const Reply first = Ask("0.2");
  EXPECT_EQ(first.status, absl::OkStatus());
  EXPECT_TRUE(first.created);
  EXPECT_EQ(first.trial, 1);
  EXPECT_EQ(Tasks(), 3u) << "trial 0 comes first";
  ASSERT_NO_FATAL_FAILURE(TrainFirst());
  ASSERT_EQ(h.TaskOf(id_, 3).trial, 1);
  EXPECT_EQ((*h.starts.back().job->spec.trials[1].settings)[0].second, "0.2");
  EXPECT_EQ(Ask("0.3").trial, 2);
  EXPECT_TRUE(h.Stored(id_).spec.trials[2].proposed);
}

TEST_F(AskTest, TheJobWaitsForAProposalAndThenTrainsIt) {
  Begin();
  ASSERT_NO_FATAL_FAILURE(TrainFirst());
  h.Wait(absl::Seconds(4));
  EXPECT_EQ(h.State(id_), JobState::kRunning);
  EXPECT_EQ(Tasks(), 3u);
  EXPECT_TRUE(Ask("0.2").created);
  ASSERT_EQ(Tasks(), 4u);
  EXPECT_EQ(h.TaskOf(id_, 3).state, TaskState::kRunning);
  ASSERT_NO_FATAL_FAILURE(Train(3));
  h.Wait(absl::Seconds(4));
  EXPECT_EQ(Tasks(), 4u) << "a rung of one fold, and another wait";
}

TEST_F(AskTest, WhileNothingIsProposedADecisionSaysThatSlotsWait) {
  Begin(kAskMethod, absl::Hours(1));
  ASSERT_NO_FATAL_FAILURE(TrainFirst());
  const std::vector<Decision> decisions = h.Stored(id_).decisions;
  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_EQ(decisions[0].trial_note, (TrialNote{TrialNote::kAwaitsProposal}));
  EXPECT_EQ(decisions[0].cause, "1 s used, and no trial is proposed that could begin");
  EXPECT_TRUE(Ask("0.2").created);
  ASSERT_NO_FATAL_FAILURE(Train(3));
  EXPECT_EQ(h.Stored(id_).decisions.size(), 2u) << "it is told once, and when trials begin";
}

TEST_F(AskTest, WithoutProposalsItDrawsTrialsItselfAndEnds) {
  Begin();
  ASSERT_NO_FATAL_FAILURE(TrainFirst());
  h.Wait(absl::Seconds(5));
  ASSERT_EQ(Tasks(), 4u);
  EXPECT_NE(SettingOf(1), "");
  EXPECT_FALSE(h.Stored(id_).spec.trials[1].proposed);
  const Decision last = h.Stored(id_).decisions.back();
  EXPECT_EQ(last.trial_note.kind, TrialNote::kBegun);
  const std::vector<Decision> all = h.Stored(id_).decisions;
  const auto said = std::find_if(all.begin(), all.end(), [](const Decision& decision) {
    return decision.trial_note.kind == TrialNote::kDrawsItself;
  });
  ASSERT_NE(said, all.end());
  EXPECT_EQ(said->cause, "no trial was proposed for 5 s");
  ASSERT_NO_FATAL_FAILURE(Train(3, 0.8));
  ASSERT_EQ(Tasks(), 5u) << "it waits once alone";
  ASSERT_NO_FATAL_FAILURE(Train(4, 0.8));
  ASSERT_NO_FATAL_FAILURE(Train(5, 0.8));
  EXPECT_EQ(h.State(id_), JobState::kSucceeded);
}

TEST_F(AskTest, AProposalAfterTrialsOfItsOwnIsWaitedForAgain) {
  Begin();
  ASSERT_NO_FATAL_FAILURE(TrainFirst());
  h.Wait(absl::Seconds(5));
  EXPECT_EQ(Ask("0.2").trial, 2);
  ASSERT_NO_FATAL_FAILURE(Train(3, 0.8));
  ASSERT_EQ(h.TaskOf(id_, 4).trial, 2);
  ASSERT_NO_FATAL_FAILURE(Train(4, 0.8));
  EXPECT_EQ(Tasks(), 5u);
  EXPECT_EQ(h.State(id_), JobState::kRunning);
}

TEST_F(AskTest, WithoutAWaitSlotsNeverIdle) {
  Begin(kAskMethod, absl::ZeroDuration());
  ASSERT_NO_FATAL_FAILURE(TrainFirst());
  EXPECT_EQ(Tasks(), 4u);
  EXPECT_FALSE(h.Stored(id_).spec.trials[1].proposed);
}

TEST_F(AskTest, ARepeatedRequestAndEqualSettingsAreTheSameTrial) {
  Begin();
  EXPECT_TRUE(Ask("0.2", "r1").created);
  const Reply again = Ask("0.2", "r1");
  EXPECT_EQ(again.status, absl::OkStatus());
  EXPECT_FALSE(again.created);
  EXPECT_EQ(again.trial, 1);
  const Reply same = Ask("0.2", "r2");
  EXPECT_FALSE(same.created);
  EXPECT_EQ(same.trial, 1);
  const Reply own = Ask("0.1", "r3");
  EXPECT_FALSE(own.created);
  EXPECT_EQ(own.trial, 0);
  const Reply other = Ask("0.3", "r1");
  EXPECT_TRUE(absl::IsAlreadyExists(other.status)) << other.status;
  EXPECT_THAT(std::string(other.status.message()), HasSubstr("belongs to trial 1"));
  EXPECT_EQ(SettingOf(2), "");
}

TEST_F(AskTest, ProposalsSurviveAKillOfTraind) {
  Begin();
  ASSERT_NO_FATAL_FAILURE(TrainFirst());
  EXPECT_TRUE(Ask("0.2", "r1").created);
  h.Crash();
  h.Attach("w", 1, {h.AttemptOf(id_, 3)});
  EXPECT_EQ(SettingOf(1), "0.2");
  const Reply again = Ask("0.2", "r1");
  EXPECT_FALSE(again.created);
  EXPECT_EQ(again.trial, 1);
  EXPECT_TRUE(absl::IsAlreadyExists(Ask("0.3", "r1").status));
  ASSERT_NO_FATAL_FAILURE(Train(3));
  h.Crash();
  h.Attach("w", 1);
  h.Wait(absl::Seconds(4));
  EXPECT_EQ(h.State(id_), JobState::kRunning) << "the wait begins anew";
  h.Wait(absl::Seconds(2));
  EXPECT_NE(SettingOf(2), "");
}

TEST_F(AskTest, NoMoreTrialsThanTheSpecNames) {
  Begin();
  for (const char* dropout : {"0.2", "0.3", "0.4"}) EXPECT_TRUE(Ask(dropout).created);
  const Reply more = Ask("0.5");
  EXPECT_TRUE(absl::IsResourceExhausted(more.status)) << more.status;
  EXPECT_THAT(std::string(more.status.message()), HasSubstr("all 4 trials"));
}

TEST_F(AskTest, FinishEndsTheWait) {
  Begin();
  ASSERT_NO_FATAL_FAILURE(TrainFirst());
  h.Step({Finish{3, id_}});
  const Reply late = Ask("0.2");
  EXPECT_TRUE(absl::IsFailedPrecondition(late.status)) << late.status;
  h.Publish(id_, Quality::kFull);
  EXPECT_EQ(h.State(id_), JobState::kSucceeded);
}

TEST_F(AskTest, AWaitNeverPassesTheDeadline) {
  Begin(kAskMethod, absl::Hours(1));
  ASSERT_NO_FATAL_FAILURE(TrainFirst());
  h.Wait(h.Stored(id_).deadline - absl::Milliseconds(100) - h.now);
  h.Publish(id_, Quality::kFull);
  EXPECT_EQ(h.State(id_), JobState::kSucceeded);
  EXPECT_LE(h.Stored(id_).finished_at, h.Stored(id_).deadline);
}

TEST_F(AskTest, OtherJobsTakeNoProposals) {
  Begin("tpe");
  const Reply reply = Ask("0.2");
  EXPECT_TRUE(absl::IsFailedPrecondition(reply.status)) << reply.status;
  EXPECT_THAT(std::string(reply.status.message()), HasSubstr("search.method: ask"));
}

}  // namespace
}  // namespace traind
