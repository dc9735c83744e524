// A Worker whose state folder is not traind's: what waits for files, and in which order.
#include <gtest/gtest.h>

#include "tests/worker/daemon/worker_core_harness.h"
#include "worker/daemon/waiting_facts.h"

namespace traind::worker {
namespace {

class OwnFolderCoreTest : public CoreTest {
 protected:
  OwnFolderCoreTest() { core_->KeepOwnFolder(); }
};

TEST_F(OwnFolderCoreTest, NoProcessStartsBeforeTheFilesAreThere) {
  Start(Train(1));
  EXPECT_TRUE(spawned_.empty());
  EXPECT_EQ(core_->RunningAttempts(), std::vector<int64_t>{1});
  core_->Brought(1, std::string("{}"), now_);
  Collect();
  EXPECT_EQ(spawned_.size(), 1u);
  Ready(spawned_[0].process);
  EXPECT_TRUE(Sent<rp::Train>().at(0).files_travel);
}

TEST_F(OwnFolderCoreTest, ATransferThatHangsEndsAtTheDeadline) {
  TaskStart task = Prepare(1, now_ + absl::Seconds(10));
  Start(task);
  RunUntil(now_ + absl::Seconds(11));
  EXPECT_EQ(Ends(), std::vector<std::string>{"1 DEADLINE"});
  core_->Brought(1, std::string("{}"), now_);
  Collect();
  EXPECT_TRUE(spawned_.empty()) << "the Attempt is over";
}

TEST_F(OwnFolderCoreTest, AFileOfTheUserThatIsGoneIsAnErrorOfTheData) {
  Start(Prepare(1, now_ + absl::Seconds(10)));
  core_->Brought(1, absl::NotFoundError("data.train: /data/x.csv"), now_);
  Collect();
  EXPECT_EQ(Ends(), std::vector<std::string>{"1 DATA_ERROR"});
  EXPECT_NE(LastMessage().find("/data/x.csv"), std::string::npos);
}

TEST_F(OwnFolderCoreTest, APrepareReadsTheFetchedFiles) {
  Start(Prepare(1, now_ + absl::Seconds(10)));
  core_->Brought(1, std::string("the local paths"), now_);
  Collect();
  EXPECT_EQ(Sent<rp::Prepare>().at(0).spec_json, "the local paths");
}

TEST_F(OwnFolderCoreTest, ItPublishesNothing) {
  Start(Train(1));
  core_->Brought(1, std::string("{}"), now_);
  Collect();
  Ready(spawned_.at(0).process);
  core_->Disconnected(now_);
  Say(spawned_[0].process, About<rp::FoldSaved>(1));
  RunUntil(now_ + absl::Seconds(30));
  EXPECT_TRUE(publishes_.empty());
}

TEST_F(OwnFolderCoreTest, AFileIsPredictedSoonerThanTheDeadlineSinceItsAnswersTravel) {
  const auto remaining = [this](int64_t attempt, absl::Duration budget) {
    TaskStart task = Train(attempt);
    task.kind = TaskKind::kPredict;
    task.slots.clear();
    task.deadline_at = now_ + budget;
    Start(task);
    core_->Brought(attempt, std::string("{}"), now_);
    Collect();
    Ready(spawned_.back().process);
    const int64_t left = Sent<rp::Predict>().back().remaining_ms;
    core_->Stop(attempt, StopMode::kAbort, StopReason::kJobOver, "the next one", now_);
    Collect();
    return left;
  };
  const int64_t long_ms = remaining(1, absl::Seconds(100));
  EXPECT_LE(long_ms, 90'000);
  EXPECT_GE(long_ms, 88'000);
  EXPECT_LE(remaining(2, absl::Seconds(5)), 4'000);
}

// ---- the order of facts

ReportAction Fact(const facts::Fact& fact) { return {1, fact}; }

class WaitingFactsTest : public ::testing::Test {
 protected:
  WaitingFactsTest() {
    TaskStart task;
    task.attempt = 1;
    task.job = "j";
    facts_.Started(task, absl::ZeroDuration());
  }
  WaitingFacts facts_;
  absl::Duration at_ = absl::Seconds(5);
};

TEST_F(WaitingFactsTest, AFactThatNamesNoFileIsToldAtOnce) {
  EXPECT_EQ(facts_.Add(Fact(facts::Started())).size(), 1u);
  EXPECT_EQ(facts_.Add(Fact(facts::Progress())).size(), 1u);
  EXPECT_FALSE(facts_.NextSend(1, at_).has_value());
}

TEST_F(WaitingFactsTest, AFactWaitsForItsFilesAndTheNextOnesBehindIt) {
  EXPECT_TRUE(facts_.Add(Fact(facts::CheckpointSaved())).empty());
  ASSERT_TRUE(facts_.NextSend(1, at_).has_value());
  EXPECT_FALSE(facts_.NextSend(1, at_).has_value()) << "one send at a time";
  EXPECT_TRUE(facts_.Add(Fact(facts::Epoch())).empty());
  EXPECT_TRUE(facts_.Add(Fact(facts::Progress())).empty()) << "dropped";
  EXPECT_TRUE(facts_.Add(Fact(facts::FoldSaved())).empty());
  EXPECT_EQ(facts_.Attempts(), std::vector<int64_t>{1});
  const auto told = facts_.Sent(1, true, 0, at_);
  ASSERT_EQ(told.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<facts::CheckpointSaved>(told[0].fact));
  EXPECT_TRUE(std::holds_alternative<facts::Epoch>(told[1].fact));
  ASSERT_TRUE(facts_.NextSend(1, at_).has_value()) << "the fold's files came later";
  EXPECT_EQ(facts_.Sent(1, true, 0, at_).size(), 1u);
  EXPECT_TRUE(facts_.Attempts().empty());
}

TEST_F(WaitingFactsTest, FetchedFilesHaveTheirUsersNamesInWhatIsTold) {
  facts_.Brought(1, {{"/own/inputs/0a/train.csv", "/data/train.csv"}}, 0, at_);
  facts_.Add(Fact(Ended{AttemptEndReason::kDataError, "/own/inputs/0a/train.csv:3: no number"}));
  ASSERT_TRUE(facts_.NextSend(1, at_).has_value());
  const auto told = facts_.Sent(1, true, 0, at_);
  EXPECT_EQ(std::get<Ended>(told.at(0).fact).message, "/data/train.csv:3: no number");
}

TEST_F(WaitingFactsTest, WhatDidNotGetThereIsNotToldButTheEndIs) {
  facts_.Add(Fact(facts::FoldSaved()));
  facts_.Add(Fact(Ended{AttemptEndReason::kCompleted, ""}));
  const auto send = facts_.NextSend(1, at_);
  ASSERT_TRUE(send.has_value());
  EXPECT_TRUE(send->with_log);
  const auto told = facts_.Sent(1, false, 0, at_);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<Ended>(told[0].fact));
  EXPECT_TRUE(facts_.Jobs().empty());
}

// traind may end the Job at that, and takes no log of a Job that is over.
TEST_F(WaitingFactsTest, TheLogGoesWithAFoldsLastAnswer) {
  facts::FoldSaved saved;
  facts_.Add(Fact(saved));
  EXPECT_FALSE(facts_.NextSend(1, at_)->with_log);
  facts_.Sent(1, true, 0, at_);
  saved.last = true;
  facts_.Add(Fact(saved));
  EXPECT_TRUE(facts_.NextSend(1, at_)->with_log);
}

TEST_F(WaitingFactsTest, WhatTravelledIsToldBeforeTheFactsThatWaitedForIt) {
  const auto brought = facts_.Brought(1, {}, 1000, at_);
  ASSERT_EQ(brought.size(), 1u);
  EXPECT_EQ(std::get<facts::Transfers>(brought[0].fact).fetched_bytes, 1000);
  EXPECT_EQ(std::get<facts::Transfers>(brought[0].fact).fetch_s, 5);
  for (const int64_t sent : {300, 600}) {
    facts_.Add(Fact(facts::CheckpointSaved()));
    at_ += absl::Minutes(1);
    ASSERT_TRUE(facts_.NextSend(1, at_).has_value());
    at_ += absl::Seconds(2);
    const auto told = facts_.Sent(1, true, 300, at_);
    ASSERT_EQ(told.size(), 2u);
    const auto& transfers = std::get<facts::Transfers>(told[0].fact);
    EXPECT_EQ(transfers.fetched_bytes, 1000);
    EXPECT_EQ(transfers.sent_bytes, sent);
    EXPECT_EQ(transfers.send_s, sent / 150.0) << "what passed between the sends is left out";
  }
}

TEST_F(WaitingFactsTest, OnlyProgramsHaveAPackOfCheckpoints) {
  EXPECT_EQ(facts_.RequestOf(1)->program_pack, "");
  EXPECT_EQ(facts_.RequestOf(5), nullptr);
  TaskStart task;
  task.attempt = 5;
  task.job = "j";
  task.kind = TaskKind::kTrain;
  task.model = "program";
  task.fold = 2;
  facts_.Started(task, absl::ZeroDuration());
  EXPECT_EQ(facts_.RequestOf(5)->program_pack, "jobs/j/program/fold-2-5.pack");
}

TEST_F(WaitingFactsTest, WhatIsPublishedHereIsSentOnceTheSendBeforeIsOver) {
  TaskStart predict;
  predict.attempt = 2;
  predict.job = "p";
  predict.kind = TaskKind::kPredict;
  facts_.Started(predict, at_);
  EXPECT_EQ(facts_.Published("j"), 0) << "its answers are not those of a file";
  EXPECT_FALSE(facts_.NextSend(2, at_).has_value());
  EXPECT_EQ(facts_.Published("p"), 2);
  ASSERT_TRUE(facts_.NextSend(2, at_).has_value());
  EXPECT_EQ(facts_.Published("p"), 2);
  EXPECT_TRUE(facts_.Add({2, Ended{AttemptEndReason::kCompleted, ""}}).empty());
  EXPECT_FALSE(facts_.NextSend(2, at_).has_value());
  EXPECT_TRUE(facts_.Sent(2, true, 0, at_).empty()) << "the end waits for what came last";
  const auto send = facts_.NextSend(2, at_);
  ASSERT_TRUE(send.has_value());
  EXPECT_TRUE(send->with_log);
  EXPECT_EQ(facts_.Sent(2, true, 0, at_).size(), 1u);
}

}  // namespace
}  // namespace traind::worker
