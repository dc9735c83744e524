#include "server/plan/speed_guess.h"

#include <gtest/gtest.h>

#include <vector>

namespace traind {
namespace {

TEST(SpeedGuessTest, CountsTheProductsOfEachKindOfNetwork) {
  EXPECT_EQ(MlpMultiplications(10, std::vector<int32_t>{20, 30}), 10 * 20 + 20 * 30);
  EXPECT_EQ(LstmMultiplications(3, 5, 8, 1), 5 * 4 * 8 * (3 + 8));
  EXPECT_EQ(LstmMultiplications(3, 5, 8, 2), 5 * (4 * 8 * (3 + 8) + 4 * 8 * 16));
  // One step attends to itself: queries, keys, values and their output, then the hidden layer.
  EXPECT_EQ(TransformerMultiplications(1, 8, 16, 1, true), 4 * 64 + 2 * 8 * 16 + 2 * 8);
  EXPECT_GT(TransformerMultiplications(9, 8, 16, 1, false),
            TransformerMultiplications(9, 8, 16, 1, true));
  EXPECT_EQ(CnnMultiplications(16, 8, std::vector<int32_t>{1}), 2 * 9 * 8 * 8 * 16 * 16);
  EXPECT_EQ(CnnMultiplications(16, 8, std::vector<int32_t>{1, 2}), 3 * 2 * 9 * 8 * 8 * 16 * 16);
  EXPECT_EQ(Unet3dMultiplications(64, 1, 4, 1, 3), 27 * 64 * (1 * 4 + 4 * 4));
  // Two levels: the first also on the way up, the second on an eighth of the voxels.
  EXPECT_EQ(Unet3dMultiplications(64, 1, 4, 2, 3),
            27 * 64 * (1 * 4 + 4 * 4 + 8 * 4 + 4 * 4) + 27 * 8 * (4 * 8 + 8 * 8));
  EXPECT_EQ(Unet3dMultiplications(64, 1, 4, 2, 2),
            9 * 64 * (1 * 4 + 4 * 4 + 8 * 4 + 4 * 4) + 9 * 16 * (4 * 8 + 8 * 8));
}

TEST(SpeedGuessTest, AnEpochTakesLongerWithMoreBytesSamplesOrProducts) {
  const double few = GuessSpeed({1e8, 1e6, 1e5}).epoch_s;
  EXPECT_GT(GuessSpeed({2e8, 1e6, 1e5}).epoch_s, few);
  EXPECT_GT(GuessSpeed({1e8, 2e6, 1e5}).epoch_s, few);
  EXPECT_GT(GuessSpeed({1e8, 1e6, 2e5}).epoch_s, few);
}

TEST(SpeedGuessTest, EveryFigureIsAboveZeroForTheSmallestJob) {
  const Measured guess = GuessSpeed({});
  EXPECT_GT(guess.epoch_s, 0);
  EXPECT_GT(guess.step_s, 0);
  EXPECT_GT(guess.evaluate_s, 0);
  EXPECT_GT(guess.predict_s, 0);
  EXPECT_NEAR(guess.step_s * static_cast<double>(guess.steps_per_epoch), guess.epoch_s, 1e-9);
}

}  // namespace
}  // namespace traind
