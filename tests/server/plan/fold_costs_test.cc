#include "server/plan/fold_costs.h"

#include <gtest/gtest.h>

namespace traind {
namespace {

TEST(TypicalCostTest, IsTheMedianButTheDearestPrediction) {
  FoldCost a, b, c;
  a.epoch_s = 1;
  a.predict_s = 3;
  b.epoch_s = 2;
  b.predict_s = 1;
  c.epoch_s = 9;
  const FoldCost typical = TypicalCost({a, b, c});
  EXPECT_DOUBLE_EQ(typical.epoch_s, 2);
  EXPECT_DOUBLE_EQ(typical.predict_s, 3);
}

TEST(FoldsBehindTest, PendingFoldsAreDealtToGangs) {
  // 5 folds on 2 gangs, two running: three wait, two of them behind the first.
  EXPECT_EQ(FoldsBehind(0, 2, 3, 2), 2);
  EXPECT_EQ(FoldsBehind(1, 2, 3, 2), 1);
  // Idle gangs take the first ones.
  EXPECT_EQ(FoldsBehind(0, 1, 3, 4), 0);
  EXPECT_EQ(FoldsBehind(0, 1, 4, 2), 2);
  EXPECT_EQ(FoldsBehind(0, 1, 0, 1), 0);
}

}  // namespace
}  // namespace traind
