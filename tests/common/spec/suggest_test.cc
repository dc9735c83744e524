#include "common/base/suggest.h"

#include <gtest/gtest.h>

namespace traind {
namespace {

TEST(SuggestTest, SlipsOfOneLetterInThreeAreGuessed) {
  const std::vector<std::string> keys = {"learning_rate", "epochs", "batch", "id"};
  EXPECT_EQ(ClosestWord("lerning_rate", keys), "learning_rate");
  EXPECT_EQ(ClosestWord("epcohs", keys), "epochs");
  EXPECT_EQ(ClosestWord("EPOCH", keys), "epochs");
  EXPECT_EQ(DidYouMean("bacth", keys), "; did you mean 'batch'?");
}

TEST(SuggestTest, AWordFarFromAllIsNotGuessed) {
  const std::vector<std::string> keys = {"learning_rate", "epochs", "id"};
  EXPECT_EQ(ClosestWord("colour", keys), "");
  EXPECT_EQ(ClosestWord("x", keys), "");
  EXPECT_EQ(ClosestWord("", keys), "");
  EXPECT_EQ(ClosestWord(std::string(10000, 'e'), keys), "");
  EXPECT_EQ(DidYouMean("colour", keys), "");
}

}  // namespace
}  // namespace traind
