#include "worker/train/learner_checkpoint.h"

#include <gtest/gtest.h>

#include <vector>

namespace traind {
namespace {

Learner::State SomeState() {
  Learner::State state;
  state.slots[kWeightsSlot] = {1, 2, 3};
  state.slots[kBestWeightsSlot] = {4, 5, 6};
  state.slots["exp_avg"] = {7, 8, 9};
  state.optimizer_steps = 17;
  state.body_steps = 5;
  state.layer_steps = {0, 2, 5};
  state.loss_scale = 1024;
  state.growth_tracker = 12;
  return state;
}

TEST(LearnerCheckpointTest, AStateComesBackAsItWas) {
  Checkpoint checkpoint;
  checkpoint.has_best = true;
  PutLearnerState(SomeState(), checkpoint);
  const Learner::State back = LearnerStateOf(checkpoint);
  EXPECT_EQ(back.slots, SomeState().slots);
  EXPECT_EQ(back.optimizer_steps, 17);
  EXPECT_EQ(back.body_steps, 5);
  EXPECT_EQ(back.layer_steps, (std::vector<int64_t>{0, 2, 5}));
  EXPECT_EQ(back.loss_scale, 1024);
  EXPECT_EQ(back.growth_tracker, 12);
}

TEST(LearnerCheckpointTest, WithoutAMeasuredEpochTheWeightsAreTheBest) {
  Checkpoint checkpoint;
  PutLearnerState(SomeState(), checkpoint);
  EXPECT_EQ(checkpoint.slots.count(kBestWeightsSlot), 0u);
  EXPECT_EQ(LearnerStateOf(checkpoint).slots.at(kBestWeightsSlot), (std::vector<float>{1, 2, 3}));
}

}  // namespace
}  // namespace traind
