#include "common/search/range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Range Parsed(const std::string& text) {
  const auto range = ParseRange(text);
  EXPECT_TRUE(range.ok()) << range.status();
  return range.ok() ? *range : Range();
}
std::string Wrong(const std::string& text) {
  return std::string(ParseRange(text).status().message());
}
std::vector<std::string> Values(const std::string& text) {
  const Range range = Parsed(text);
  std::vector<std::string> values;
  for (int i = 0; i < ValueCount(range); ++i) values.push_back(ValueOf(range, i));
  return values;
}

TEST(RangeTest, EachFormIsReadAndWritten) {
  for (const char* text :
       {"log(0.0001, 0.1)", "uniform(0, 0.5)", "uniform(-1, 1, 0.25)", "int(2, 8)", "int(0, 10, 5)",
        "log_int(4, 200)", "log(1, 100, 3)", "choice(a, b)", "choice([64], [64, 64])"}) {
    EXPECT_EQ(Text(Parsed(text)), text);
  }
  EXPECT_EQ(Text(Parsed(" log( 1e-4 ,1e-1 ) ")), "log(0.0001, 0.1)");
  EXPECT_THAT(Parsed("choice([64, 32], [8])").choices, ElementsAre("[64, 32]", "[8]"));
}

TEST(RangeTest, MistakesAreNamed) {
  EXPECT_THAT(Wrong("uniform(0.5, 0)"), HasSubstr("ends reversed; write uniform(0, 0.5)"));
  EXPECT_THAT(Wrong("log(0, 1)"), HasSubstr("begins at 0 or below"));
  EXPECT_THAT(Wrong("log_int(0, 9)"), HasSubstr("begins at 0 or below"));
  EXPECT_THAT(Wrong("int(1, 2.5)"), HasSubstr("needs whole numbers"));
  EXPECT_THAT(Wrong("int(3, 3)"), HasSubstr("has one value; set the field itself"));
  EXPECT_THAT(Wrong("choice(a)"), HasSubstr("has one value; set the field itself"));
  EXPECT_THAT(Wrong("choice(a, a)"), HasSubstr("'a' twice"));
  EXPECT_THAT(Wrong("choice(a, )"), HasSubstr("empty value"));
  EXPECT_THAT(Wrong("unifrom(0, 1)"), HasSubstr("is no range; write a list, or one of uniform("));
  EXPECT_THAT(Wrong("log(1e-4"), HasSubstr("within braces a range needs quotes"));
  EXPECT_THAT(Wrong("log(1)"), HasSubstr("needs two ends, as in log(1e-4, 1e-1)"));
  EXPECT_THAT(Wrong("log(a, 1)"), HasSubstr("has 'a', which is no number"));
  EXPECT_THAT(Wrong("uniform(0, 1, -1)"), HasSubstr("step that is not above 0"));
  EXPECT_THAT(Wrong("log(1, 10, 1)"), HasSubstr("needs a number of values"));
  EXPECT_THAT(Wrong("7"), HasSubstr("is no range"));
}

TEST(RangeTest, FiniteRangesListTheirValues) {
  EXPECT_THAT(Values("int(2, 5)"), ElementsAre("2", "3", "4", "5"));
  EXPECT_THAT(Values("int(0, 9, 4)"), ElementsAre("0", "4", "8"));
  EXPECT_THAT(Values("uniform(0, 0.3, 0.1)"), ElementsAre("0", "0.1", "0.2", "0.3"));
  EXPECT_THAT(Values("log(1, 100, 3)"), ElementsAre("1", "10", "100"));
  EXPECT_THAT(Values("log_int(1, 3)"), ElementsAre("1", "2", "3"));
  EXPECT_THAT(Values("choice(b, a)"), ElementsAre("b", "a"));
  EXPECT_TRUE(std::isinf(ValueCount(Parsed("uniform(0, 1)"))));
}

// Every value lies in the range, its place leads back to it, and both ends can be drawn.
TEST(RangeTest, PlacesAndValuesBelongTogether) {
  for (const char* text :
       {"log(0.0001, 0.1)", "uniform(0.123456, 0.654321)", "int(2, 8)", "int(0, 9, 4)",
        "log_int(4, 200)", "log(1, 100, 3)", "choice(x, y, z)"}) {
    const Range range = Parsed(text);
    const Axis axis = AxisOf(range);
    for (int i = 0; i <= 200; ++i) {
      const double place =
          axis.choices > 0 ? i % axis.choices : axis.low + (axis.high - axis.low) * i / 200;
      const std::string value = ValueAt(range, place);
      const auto back = PlaceOf(range, value);
      ASSERT_TRUE(back.has_value()) << text << ": " << value;
      EXPECT_EQ(ValueAt(range, *back), value) << text;
    }
    if (axis.choices > 0) continue;
    EXPECT_EQ(std::stod(ValueAt(range, axis.low - 9)), range.low) << text;
  }
  EXPECT_FALSE(PlaceOf(Parsed("int(2, 8)"), "9").has_value());
  EXPECT_FALSE(PlaceOf(Parsed("log(1, 2)"), "auto").has_value());
  EXPECT_FALSE(PlaceOf(Parsed("choice(a, b)"), "c").has_value());
}

TEST(RangeTest, ASpaceNamesTheFieldThatIsWrong) {
  const auto space = ParseSpace({{"a", "int(1, 3)"}, {"b", "choice(x, y)"}});
  ASSERT_TRUE(space.ok());
  EXPECT_EQ(PointCount(*space), 6);
  EXPECT_THAT(std::string(ParseSpace({{"a", "int(3, 1)"}}).status().message()),
              HasSubstr("a: 'int(3, 1)' has its ends reversed"));
}

}  // namespace
}  // namespace traind
