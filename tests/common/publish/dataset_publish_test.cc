#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/data/table/npy.h"
#include "common/publish/dataset_publisher.h"

namespace traind {
namespace {

constexpr char kJob[] = "later-1";
const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

// Values of one target for three rows.
class DatasetPublishTest : public testing::Test {
 protected:
  DatasetPublishTest() {
    std::string pattern = testing::TempDir() + "/dataset.XXXXXX";
    state_ = mkdtemp(pattern.data());
    EXPECT_TRUE(MakeDirs(state_ + "/" + JobDir(kJob)).ok());
    std::ofstream(state_ + "/ids.bin") << "1:a3:b,c0:";
  }
  ~DatasetPublishTest() override { std::filesystem::remove_all(state_); }

  MemberValues Answered(int fold, double weight, const std::vector<float>& values) const {
    MemberValues member;
    member.member.fold = fold;
    member.member.attempt = fold + 1;
    member.member.weight = weight;
    member.path = state_ + "/values-" + std::to_string(fold) + ".npy";
    EXPECT_TRUE(WriteNpy(member.path, {3, 1}, values).ok());
    return member;
  }

  DatasetAnswer Answer(std::vector<MemberValues> members, int wanted) const {
    DatasetAnswer answer;
    answer.state_dir = state_;
    answer.job = kJob;
    answer.models_from = "source-1";
    answer.metric = "rmse";
    answer.columns = {"id", {"y"}, {}};
    answer.rows = 3;
    answer.ids = state_ + "/ids.bin";
    answer.members = std::move(members);
    answer.members_wanted = wanted;
    answer.quality = Quality::kFull;
    answer.oof_score = 0.25;
    answer.comparable = true;
    return answer;
  }

  std::string Standing() const {
    std::ifstream file(state_ + "/" + JobDir(kJob) + "/current/predictions.csv");
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  std::string state_;
};

TEST_F(DatasetPublishTest, AllModelsTogetherAreWorthWhatTheyWereWorth) {
  const auto published =
      PublishDataset(Answer({Answered(0, 0.5, {1, 2, 3}), Answered(1, 1.5, {5, 6, 7})}, 2), kNow);
  ASSERT_TRUE(published.ok()) << published.status();
  EXPECT_EQ(published->quality, Quality::kFull);
  EXPECT_EQ(published->oof_score, 0.25);
  EXPECT_TRUE(published->comparable);
  ASSERT_EQ(published->members.size(), 2u);
  EXPECT_EQ(published->members[0].weight, 0.25);
  EXPECT_EQ(Standing(), "id,y\na,4\n\"b,c\",5\n,6\n");
}

TEST_F(DatasetPublishTest, SomeModelsAreDegradedAndTheirScoreIsNotTold) {
  const auto published = PublishDataset(Answer({Answered(1, 1.5, {5, 6, 7})}, 2), kNow);
  ASSERT_TRUE(published.ok()) << published.status();
  EXPECT_EQ(published->quality, Quality::kDegraded);
  EXPECT_FALSE(published->oof_score.has_value());
  EXPECT_FALSE(published->comparable);
  EXPECT_EQ(published->members[0].weight, 1);
}

TEST_F(DatasetPublishTest, AStandInIsAFloorUntilAModelHasAnswered) {
  DatasetAnswer part = Answer({Answered(0, 1, {1, 1, 1})}, 1);
  part.stand_in = true;
  const auto floor = PublishDataset(part, kNow);
  ASSERT_TRUE(floor.ok()) << floor.status();
  EXPECT_EQ(floor->quality, Quality::kFloor);
  EXPECT_FALSE(floor->oof_score.has_value());
  const auto whole = PublishDataset(Answer({Answered(0, 1, {1, 2, 3})}, 1), kNow);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->quality, Quality::kFull);
  EXPECT_EQ(Standing(), "id,y\na,1\n\"b,c\",2\n,3\n");
  // The reverse does not happen.
  const auto again = PublishDataset(part, kNow);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->number, whole->number);
}

TEST_F(DatasetPublishTest, FewerModelsDoNotReplaceMore) {
  const auto two =
      PublishDataset(Answer({Answered(0, 1, {1, 2, 3}), Answered(1, 1, {1, 2, 3})}, 3), kNow);
  ASSERT_TRUE(two.ok()) << two.status();
  const auto one = PublishDataset(Answer({Answered(2, 1, {9, 9, 9})}, 3), kNow);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->number, two->number);
}

TEST_F(DatasetPublishTest, OneThatWasMadeElsewhereIsTakenOverWhereItHasMoreModels) {
  const std::string job = state_ + "/" + JobDir(kJob), arrived = job + "/arrived";
  const auto arrive = [&](std::vector<MemberValues> members) {
    // As another machine would number it.
    const auto made = PublishDataset(Answer(std::move(members), 3), kNow);
    ASSERT_TRUE(made.ok()) << made.status();
    std::filesystem::rename(state_ + "/" + PredictionDir(kJob, made->number), arrived);
    std::filesystem::remove(job + "/current");
  };
  arrive({Answered(0, 1, {1, 2, 3}), Answered(1, 1, {3, 4, 5})});
  ASSERT_TRUE(AdoptDataset(state_, kJob, arrived).ok());
  EXPECT_EQ(Standing(), "id,y\na,2\n\"b,c\",3\n,4\n");
  const int number = ReadStandingPrediction(state_, kJob).value().number;
  std::filesystem::rename(job + "/current", job + "/kept");
  arrive({Answered(2, 1, {9, 9, 9})});
  std::filesystem::rename(job + "/kept", job + "/current");
  ASSERT_TRUE(AdoptDataset(state_, kJob, arrived).ok());
  EXPECT_EQ(ReadStandingPrediction(state_, kJob).value().number, number) << "it has fewer models";
  EXPECT_TRUE(absl::IsDataLoss(AdoptDataset(state_, "other", arrived)));
  std::ofstream(arrived + "/manifest.json") << "{}";
  EXPECT_TRUE(absl::IsDataLoss(AdoptDataset(state_, kJob, arrived)));
}

TEST_F(DatasetPublishTest, SaysThatItGoesOn) {
  int calls = 0;
  DatasetAnswer answer = Answer({Answered(0, 1, {1, 2, 3})}, 1);
  answer.progress = [&calls] { ++calls; };
  ASSERT_TRUE(PublishDataset(answer, kNow).ok());
  EXPECT_GT(calls, 0);
}

TEST_F(DatasetPublishTest, ValuesOfOtherRowsAreRefused) {
  MemberValues member = Answered(0, 1, {1, 2, 3});
  ASSERT_TRUE(WriteNpy(member.path, {2, 1}, std::vector<float>{1, 2}).ok());
  EXPECT_EQ(PublishDataset(Answer({member}, 1), kNow).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(PublishDataset(Answer({}, 1), kNow).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Standing(), "");
}

TEST_F(DatasetPublishTest, LaterRowsAreAdjustedAsTheModelsOwnAnswerWas) {
  MemberValues member = Answered(0, 1, {0, 0, 0});
  ASSERT_TRUE(WriteNpy(member.path, {3, 2}, std::vector<float>{0.5f, 0.5f, 0.8f, 0.2f, 1, 0}).ok());
  DatasetAnswer answer = Answer({member}, 1);
  answer.tuned.temperature = 2;
  answer.tuned.threshold = 0.33;
  answer.columns = {"id", {"y"}, {"no", "yes"}, answer.tuned.threshold};
  ASSERT_TRUE(PublishDataset(answer, kNow).ok());
  // 0.8 and 0.2 to the power 1/2 are as 2 to 1.
  EXPECT_EQ(Standing(), "id,y,p_no,p_yes\na,yes,0.5,0.5\n\"b,c\",yes,0.666667,0.333333\n,no,1,0\n");
  const auto manifest = ReadStandingPrediction(state_, kJob);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->tuned, answer.tuned);
}

TEST_F(DatasetPublishTest, LaterRowsAreJoinedByTheSecondLayerOfTheModelsOwnAnswer) {
  MemberValues first = Answered(0, 1, {0, 0, 0}), second = Answered(1, 2, {0, 0, 0});
  second.member.fold = 0;
  second.member.trial = 4;
  ASSERT_TRUE(
      WriteNpy(first.path, {3, 2}, std::vector<float>{0.5f, 0.5f, 0.8f, 0.2f, 0.8f, 0.2f}).ok());
  ASSERT_TRUE(
      WriteNpy(second.path, {3, 2}, std::vector<float>{0.5f, 0.5f, 0.5f, 0.5f, 0.8f, 0.2f}).ok());
  DatasetAnswer answer = Answer({first, second}, 2);
  answer.tuned.powers = {{0, 0.5}, {4, 0.5}};
  answer.columns = {"id", {"y"}, {"no", "yes"}};
  ASSERT_TRUE(PublishDataset(answer, kNow).ok());
  // 0.8 x 0.5 and 0.2 x 0.5 to the power 1/2 are as 2 to 1.
  EXPECT_EQ(Standing(),
            "id,y,p_no,p_yes\na,no,0.5,0.5\n\"b,c\",no,0.666667,0.333333\n,no,0.8,0.2\n");
  const auto manifest = ReadStandingPrediction(state_, kJob);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->tuned, answer.tuned);
}

TEST_F(DatasetPublishTest, LaterRowsHaveTheQuantilesOfTheModelsOwnAnswer) {
  DatasetAnswer answer = Answer({Answered(0, 1, {1, 2, 3})}, 1);
  answer.columns = {"id", {"y"}, {}, {}, {{0.25, 0.75}, {{{1, 3}, {-1, 1, -2, 4}, false}}}};
  ASSERT_TRUE(PublishDataset(answer, kNow).ok());
  EXPECT_EQ(Standing(), "id,y,y_q0.25,y_q0.75\na,1,0,2\n\"b,c\",2,0.5,4.5\n,3,1,7\n");
  const auto manifest = ReadStandingPrediction(state_, kJob);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->quantiles, answer.columns.quantiles);
}

}  // namespace
}  // namespace traind
