#include "worker/task/inference_control.h"

#include <absl/time/time.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "worker/inference/inference_spec.h"

namespace traind {
namespace {

using ::testing::HasSubstr;

class StoppedClock final : public Clock {
 public:
  absl::Time WallNow() const override { return absl::UnixEpoch(); }
  absl::Duration MonotonicNow() const override { return now; }
  absl::Duration now = absl::Seconds(100);
};

rank_protocol::Rows Request(uint64_t number) {
  rank_protocol::Rows rows;
  rows.request = number;
  return rows;
}

TEST(InferenceControlTest, AllWaitingRowsAreReturnedTogether) {
  const StoppedClock clock;
  InferenceControl control(7, -1, clock);
  EXPECT_EQ(control.deadline(), absl::InfiniteDuration());
  EXPECT_TRUE(control.WaitForRows(absl::ZeroDuration()).empty());
  control.Push(Request(1));
  control.Push(Request(2));
  const auto taken = control.WaitForRows(absl::InfiniteDuration());
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[1].request, 2u);
  EXPECT_TRUE(control.WaitForRows(absl::ZeroDuration()).empty());
}

TEST(InferenceControlTest, AnOrderEndsTheWait) {
  const StoppedClock clock;
  InferenceControl control(7, -1, clock);
  std::thread worker([&] { control.Apply(rank_protocol::Stop{7, true}); });
  EXPECT_TRUE(control.WaitForRows(absl::InfiniteDuration()).empty());
  worker.join();
  EXPECT_EQ(control.order(), InferenceControl::Order::kAnswer);
  control.Apply(rank_protocol::Stop{7, false});
  EXPECT_EQ(control.order(), InferenceControl::Order::kDrop);
}

TEST(InferenceControlTest, AReplanMovesTheDeadline) {
  const StoppedClock clock;
  InferenceControl control(7, 5'000, clock);
  EXPECT_EQ(control.deadline(), absl::Seconds(105));
  rank_protocol::Replan replan;
  control.Apply(replan);
  EXPECT_EQ(control.deadline(), absl::Seconds(105));
  replan.remaining_ms = 60'000;
  control.Apply(replan);
  EXPECT_EQ(control.deadline(), absl::Seconds(160));
}

TEST(InferenceSpecTest, SaysWhatToPredictAndWithWhat) {
  const auto spec = ParseInferenceSpec(R"({"predict": {"from": "job-1", "data": "/d/x.csv",
      "min_members": 2, "models": {"metric": "auc", "quality": "FULL", "oof": 0.75,
      "comparable": true, "models": [
        {"fold": 1, "path": "jobs/job-1/attempts/3", "weight": 0.25, "score": 0.5, "complete": true},
        {"fold": 2, "path": "jobs/job-1/attempts/4", "weight": 0.75, "score": 1, "complete": false}]}},
      "predictions": {"ensemble": "weighted", "format": "zip", "probabilities": false}})");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->from, "job-1");
  EXPECT_EQ(spec->data, "/d/x.csv");
  EXPECT_EQ(spec->min_members, 2);
  ASSERT_EQ(spec->models.size(), 2u);
  EXPECT_EQ(spec->models[1].dir, "jobs/job-1/attempts/4");
  EXPECT_EQ(spec->models[1].weight, 0.75);
  EXPECT_FALSE(spec->models[1].complete);
  EXPECT_EQ(spec->quality, Quality::kFull);
  EXPECT_EQ(spec->oof_score, 0.75);
  EXPECT_EQ(spec->form.format, FileFormat::kZip);
  EXPECT_FALSE(spec->form.probabilities);
}

TEST(InferenceSpecTest, ServesForAsLongAsItSays) {
  const auto spec = ParseInferenceSpec(R"({"serve": {"from": "j", "idle": "0.500s", "models": {
      "metric": "rmse", "quality": "DEGRADED", "comparable": false, "models": [
        {"fold": 0, "path": "p", "weight": 1, "score": 2, "complete": true}]}}})");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->idle, absl::Milliseconds(500));
  EXPECT_FALSE(spec->oof_score.has_value());
}

TEST(InferenceSpecTest, WithoutModelsThereIsNothingToDo) {
  for (const char* text : {"", "[]", "{}", R"({"predict": {"from": "j", "data": "x"}})"}) {
    EXPECT_EQ(ParseInferenceSpec(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  const auto none = ParseInferenceSpec(R"({"serve": {"from": "j", "models": {"metric": "auc",
      "quality": "FULL", "comparable": true, "models": []}}})");
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("no model"));
}

}  // namespace
}  // namespace traind
