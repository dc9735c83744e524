#include "server/plan/transfers.h"

#include <gtest/gtest.h>

namespace traind {
namespace {

constexpr int64_t kMiB = 1 << 20;

Attempt Of(TaskKind kind, const std::string& worker, facts::Transfers transfers) {
  Attempt attempt;
  attempt.kind = kind;
  attempt.worker = worker;
  attempt.transfers = transfers;
  return attempt;
}

TEST(FetchSecondsTest, NothingIsExpectedWhereNoFileHasTravelled) {
  const std::vector<Attempt> attempts = {Of(TaskKind::kTrain, "a", {})};
  EXPECT_FALSE(FilesTravel(attempts));
  EXPECT_EQ(FetchSeconds(attempts, {2, 2, {{"a", 1}, {"b", 1}}}), 0);
  EXPECT_EQ(SendSeconds(attempts, kMiB), 0);
}

TEST(FetchSecondsTest, AWorkerFetchesAJobsFilesOnce) {
  std::vector<Attempt> attempts = {Of(TaskKind::kTrain, "a", {40 * kMiB, 8, 0, 0})};
  EXPECT_TRUE(FilesTravel(attempts));
  EXPECT_EQ(FetchSeconds(attempts, {2, 2, {{"a", 2}}}), 0);
  EXPECT_EQ(FetchSeconds(attempts, {2, 2, {{"b", 2}}}), 8);
  EXPECT_EQ(FetchSeconds(attempts, {2, 0, {}}), 0);
  EXPECT_EQ(FetchSeconds(attempts, {4, 4, {{"a", 3}, {"b", 1}}}), 2)
      << "one slot in four is on a Worker that lacks them";
  EXPECT_EQ(FetchSeconds(attempts, {}), 0);
  attempts.push_back(Of(TaskKind::kTrain, "b", {40 * kMiB, 4, 0, 0}));
  EXPECT_EQ(FetchSeconds(attempts, {4, 4, {{"a", 3}, {"b", 1}}}), 0);
  EXPECT_EQ(FetchSeconds(attempts, {1, 1, {}}), 6) << "by the mean speed";
}

TEST(FetchSecondsTest, AWorkerThatHasTheFilesTakesItsTimeToFindThatOut) {
  const std::vector<Attempt> attempts = {Of(TaskKind::kTrain, "a", {kMiB, 30, 0, 0}),
                                         Of(TaskKind::kTrain, "a", {0, 3, 0, 0}),
                                         Of(TaskKind::kTrain, "a", {0, 2, 0, 0})};
  EXPECT_EQ(FetchSeconds(attempts, {1, 1, {{"a", 1}}}), 2);
}

TEST(FetchSecondsTest, TheTableThatPrepareSentTellsWhatAFoldElsewhereFetches) {
  // The user's file came at 10 MiB a second.
  const std::vector<Attempt> attempts = {
      Of(TaskKind::kPrepare, "a", {100 * kMiB, 10, 30 * kMiB, 60})};
  EXPECT_EQ(FetchSeconds(attempts, {1, 1, {{"a", 1}}}), 0) << "it has written it";
  EXPECT_EQ(FetchSeconds(attempts, {1, 1, {{"b", 1}}}), 3);
}

TEST(SendSecondsTest, TheSpeedIsThatOfFilesThatWereSentUnlessTheyWereSmall) {
  EXPECT_EQ(SendSeconds({Of(TaskKind::kTrain, "a", {0, 0, 2 * kMiB, 4})}, 10 * kMiB), 20);
  // A few bytes in a second; 100 MiB in 9.
  const Attempt small = Of(TaskKind::kTrain, "a", {100 * kMiB, 9, 100, 1});
  EXPECT_NEAR(SendSeconds({small}, 10 * kMiB), 1, 0.01);
}

TEST(ResultBytesTest, PredictionsAndTwoCheckpointsTravelAtTheEndOfAFold) {
  Job job;
  job.spec.folds = 5;
  job.table.train_rows = 1000;
  job.table.test_rows = 300;
  EXPECT_EQ(ResultBytes(job), 500 * 4);
  job.table.classes = 3;
  job.tasks.resize(2);
  job.tasks[1].checkpoint.emplace();
  job.tasks[1].checkpoint->bytes = kMiB;
  EXPECT_EQ(ResultBytes(job), 500 * 3 * 4 + 2 * kMiB);
}

}  // namespace
}  // namespace traind
