#include "server/domain/boxed.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "server/domain/job.h"

namespace traind {
namespace {

TEST(BoxedTest, ACopyIsAValueOfItsOwn) {
  Boxed<std::string> one = std::string("a");
  Boxed<std::string> other = one;
  *other += "b";
  EXPECT_EQ(*one, "a");
  one = other;
  *one += "c";
  EXPECT_EQ(*other, "ab");
  Boxed<std::string>& self = one;
  one = self;
  EXPECT_EQ(*one, "abc");
  one = std::nullopt;
  EXPECT_FALSE(one.has_value());
  other = one;
  EXPECT_FALSE(other);
}

TEST(BoxedTest, AMoveTakesTheValue) {
  Boxed<std::string> one = std::string("a");
  const Boxed<std::string> other = std::move(one);
  EXPECT_EQ(*other, "a");
  Boxed<std::string> made;
  made.emplace() = "new";
  EXPECT_EQ(made->size(), 3u);
  made.reset();
  EXPECT_FALSE(made);
}

// A Job in the queue has one for each fold.
TEST(BoxedTest, ATaskThatHasNotBegunIsSmall) { EXPECT_LE(sizeof(Task), 320u); }

}  // namespace
}  // namespace traind
