#include "common/data/table/decimal_commas.h"

#include <gtest/gtest.h>

namespace traind {
namespace {

std::string Rewritten(const std::string& bytes, char delimiter = ';') {
  const auto points = WithDecimalPoints(bytes, delimiter);
  if (!points) return "as it is";
  EXPECT_EQ(points->bytes.size(), bytes.size());
  return points->bytes;
}

TEST(DecimalCommasTest, NumbersGetPointsAndAllElseStays) {
  EXPECT_EQ(Rewritten("x;y\n1,5;a,b\n-0,25;7\n"), "x;y\n1.5;a,b\n-0.25;7\n");
  EXPECT_EQ(Rewritten("x;y\r\n1,5e-3;2\r\n"), "x;y\r\n1.5e-3;2\r\n");
  EXPECT_EQ(Rewritten("x\ty\n1,5\tz\n", '\t'), "x\ty\n1.5\tz\n");
  EXPECT_EQ(Rewritten("x;y\n\"1,5\";2\n"), "x;y\n1.5  ;2\n");
  EXPECT_EQ(Rewritten("x;y\n\"a;1,5\n1,5\"\"\";2,5"), "x;y\n\"a;1,5\n1,5\"\"\";2.5");
  EXPECT_EQ(Rewritten("x;y\n 1,5 ;,5\n1,;1,5,5\n"), "x;y\n1.5  ;,5\n1,;1,5,5\n");
}

TEST(DecimalCommasTest, SeparatorsOfThousandsGo) {
  EXPECT_EQ(Rewritten("x;y\n1.234,5;1.234.567\n"), "x;y\n1234.5 ;1234567  \n");
  EXPECT_EQ(Rewritten("x;y\n1,5;2.500\n"), "x;y\n1.5;2500 \n");
  EXPECT_EQ(Rewritten("x;y\n1 234,5;-1 234 567,25 %\n"), "x;y\n1234.5 ;-1234567.25%   \n");
  EXPECT_EQ(Rewritten("x;y\n1'234,5;2'000\n"), "x;y\n1234.5 ;2'000\n");
  EXPECT_EQ(Rewritten("x;y\n1\xe2\x80\xaf"
                      "234,5;1\xc2\xa0"
                      "234,567\n"),
            "x;y\n1234.5   ;1234.567  \n");
  // One mark separates all thousands, in groups of three.
  EXPECT_EQ(Rewritten("x;y\n0,5;1 23,5\n1 234.567,5;012 345,5\n"),
            "x;y\n0.5;1 23,5\n1 234.567,5;012 345,5\n");
  // Dates are no numbers.
  EXPECT_EQ(Rewritten("x;y\n1,5;01.02.2024\n"), "x;y\n1.5;01.02.2024\n");
}

TEST(DecimalCommasTest, FilesWithDecimalPointsOrWithoutNumbersStay) {
  EXPECT_EQ(Rewritten("x,y\n1,5\n", ','), "as it is");
  EXPECT_EQ(Rewritten("x;y\n1,5;2.5\n"), "as it is");
  EXPECT_EQ(Rewritten("x;y\n15;a,b\n"), "as it is");
  EXPECT_EQ(Rewritten("x;y\n1,5;1'234.5\n"), "as it is");
  EXPECT_EQ(Rewritten("x;y\n1 234;7\n"), "as it is");
  EXPECT_EQ(Rewritten("x;y\n1.234;7\n"), "as it is");
  EXPECT_EQ(Rewritten(""), "as it is");
  EXPECT_EQ(Rewritten("x;\""), "as it is");
}

TEST(DecimalCommasTest, APointBehindAZeroSeparatesNoThousands) {
  EXPECT_EQ(Rewritten("x;y\n1,5;0.125\n"), "as it is");
  EXPECT_EQ(Rewritten("x;y\n0,125;1.125\n"), "x;y\n0.125;1125 \n");
}

TEST(DecimalCommasTest, QuotedNumbersMayHaveThemWhereCommasSeparateFields) {
  EXPECT_EQ(Rewritten("x,y\n\"1,5\",2\n\"1,250\",3\n", ','), "x,y\n1.5  ,2\n1.250  ,3\n");
  EXPECT_EQ(Rewritten("x,y\n\"0,125\",2\n", ','), "x,y\n0.125  ,2\n");
  EXPECT_EQ(Rewritten("x,y\n\"1 234,567\",2\n", ','), "x,y\n1234.567   ,2\n");
  // Commas between thousands, and points.
  EXPECT_EQ(Rewritten("x,y\n\"1,250\",2\n\"1,250,000\",3\n", ','), "as it is");
  EXPECT_EQ(Rewritten("x,y\n\"1,5\",2.5\n", ','), "as it is");
  EXPECT_EQ(Rewritten("x,y\n\"1,5\",1.250\n", ','), "as it is");
}

TEST(DecimalCommasTest, TheFirstNumberIsTold) {
  EXPECT_EQ(WithDecimalPoints("x;y\n7;0,062\n1,5;1\n", ';')->first, "0,062");
}

}  // namespace
}  // namespace traind
