// Folds that start from weights of a file.
#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "tests/worker/train/trainer_fixture.h"
#include "worker/task/failure.h"
#include "worker/train/fold_shape.h"

namespace traind {
namespace {

class PretrainedStartTest : public TrainerTest {
 protected:
  // The checkpoint of a run as weights in the cache; the spec that starts from them.
  std::string From(const RecordingSink& sink, const std::string& train = "",
                   const std::string& map = "{}") {
    std::string path = sink.All<rp::CheckpointSaved>().back().manifest;
    path.replace(path.rfind(".json"), 5, ".safetensors");
    const std::string bytes = File(path);
    const std::string sha256 = Sha256Hex(bytes);
    kept_ = absl::StrCat(state_, "/", WeightsCachePath(sha256));
    EXPECT_TRUE(WriteFileDurably(kept_, bytes).ok());
    std::string spec = Spec(train);
    const size_t model = spec.find("\"mlp\"");
    return spec.insert(model, absl::StrCat(R"("pretrained":{"file":"/data/w.safetensors",)",
                                           R"("sha256":")", sha256, R"(","map":)", map, "},"));
  }

  std::string kept_;
};

TEST_F(PretrainedStartTest, TheFirstEpochGoesOnFromTheFilesWeights) {
  RecordingSink first, second;
  ASSERT_TRUE(Run(Task(1), first).ok());
  rp::Train train = Task(2);
  train.spec_json = From(first);
  const absl::Status status = Run(train, second);
  ASSERT_TRUE(status.ok()) << status;
  const auto before = first.All<rp::Epoch>(), after = second.All<rp::Epoch>();
  EXPECT_LT(after[0].train_loss, before[1].train_loss);
  EXPECT_LT(after[0].val_loss, before[1].val_loss);
  EXPECT_TRUE(absl::StrContains(second.All<rp::Started>()[0].resolved_settings, " pretrained=8/8"))
      << second.All<rp::Started>()[0].resolved_settings;
  const auto decisions = second.All<rp::Decision>();
  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_EQ(decisions[0].rule, DecisionRule::kPretrained);
  EXPECT_EQ(decisions[0].to, "8/8 parameters");
  EXPECT_TRUE(absl::StrContains(decisions[0].cause, "unused tensors of the file: exp_avg."))
      << decisions[0].cause;
}

TEST_F(PretrainedStartTest, AResumeLooksAtTheCheckpointAndNotAtTheFile) {
  RecordingSink first, whole, little, rest;
  ASSERT_TRUE(Run(Task(1), first).ok());
  const std::string spec = From(first);
  rp::Train train = Task(2);
  train.spec_json = spec;
  ASSERT_TRUE(Run(train, whole).ok());
  train.attempt = 3;
  ASSERT_TRUE(RunALittle(train, little).ok());
  ASSERT_EQ(unlink(kept_.c_str()), 0);
  train.attempt = 4;
  train.resume = little.All<rp::CheckpointSaved>().back().manifest;
  const absl::Status status = Run(train, rest);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(Tensors(whole), Tensors(rest));
  EXPECT_TRUE(rest.All<rp::Decision>().empty());
}

TEST_F(PretrainedStartTest, AnAverageOfTheWeightsStartsThereToo) {
  RecordingSink first, second;
  ASSERT_TRUE(Run(Task(1), first).ok());
  rp::Train train = Task(2);
  train.spec_json = From(first, "\"ema\":0.5");
  ASSERT_TRUE(Run(train, second).ok());
  EXPECT_LT(second.All<rp::Epoch>()[0].val_loss, first.All<rp::Epoch>()[0].val_loss);
}

TEST_F(PretrainedStartTest, WhatDoesNotFitIsTheUsersError) {
  RecordingSink first, second;
  ASSERT_TRUE(Run(Task(1), first).ok());
  rp::Train train = Task(2);
  train.spec_json = From(first, "", R"({"layers.{i}.weight":"layers.0.weight"})");
  const absl::Status status = Run(train, second);
  EXPECT_EQ(FailureReason(status), AttemptEndReason::kUserError) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "; layers.2.weight [3, 8]: \"layers.0.weight\""))
      << status;
  EXPECT_TRUE(second.All<rp::Epoch>().empty());
}

TEST_F(PretrainedStartTest, TheShapeOfAFoldIsKnownBeforeItsRowsAreReady) {
  const auto spec = ParseTrainingSpec(Spec());
  ASSERT_TRUE(spec.ok());
  const auto early = ShapeOfFold(state_, table_, "job", 1, *spec);
  ASSERT_TRUE(early.ok()) << early.status();
  const auto late = LoadFold(state_, table_, "job", 1, *spec);
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_EQ(early->shape.numeric, late->shape().numeric);
  EXPECT_EQ(early->shape.cardinalities, late->shape().cardinalities);
  EXPECT_EQ(early->shape.outputs, late->shape().outputs);
  EXPECT_EQ(early->shape.window, late->shape().window);
}

}  // namespace
}  // namespace traind
