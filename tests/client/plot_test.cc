#include "client/plot.h"

#include <absl/strings/match.h>
#include <absl/strings/str_split.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "client/render_table.h"

namespace traind {
namespace {

TEST(PlotTest, AFallingCurveGoesFromTheTopLeftToTheBottomRight) {
  EXPECT_EQ(PlotCurves("loss", "epoch", {{{1, 4}, {3, 0}}}, {15, 5, false}),
            "loss\n"
            "4 |**\n"
            "  |  **\n"
            "2 |    ***\n"
            "  |       **\n"
            "0 |         **\n"
            "  +-----------\n"
            "   1  epoch  3\n");
}

TEST(PlotTest, BrailleHasEightDotsACharacter) {
  const std::string text = PlotCurves("loss", "epoch", {{{0, 1}, {1, 0}}}, {13, 3, true});
  EXPECT_TRUE(absl::StrContains(text, "\xe2\xa0\x91")) << text;  // the dots 1 and 5: a slope
  EXPECT_FALSE(absl::StrContains(text, "*")) << text;
}

TEST(PlotTest, NoLineIsWiderThanThePlot) {
  for (int columns = 30; columns < 200; columns += 7) {
    const std::string text =
        PlotCurves("t", "epoch", {{{1, 0.001}, {2, 123456}, {3, -5e-7}}}, {columns, 12, true});
    for (const auto line : absl::StrSplit(text, '\n')) EXPECT_LE(DisplayWidth(line), columns);
  }
}

TEST(PlotTest, PointsThatAreNotFiniteAreLeftOut) {
  const double nan = std::nan(""), infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(PlotCurves("t", "epoch", {{{1, nan}, {2, infinite}}, {}}, {}), "");
  EXPECT_EQ(PlotCurves("t", "epoch", {{{1, 4}, {2, nan}, {3, 0}}}, {}),
            PlotCurves("t", "epoch", {{{1, 4}, {3, 0}}}, {}));
}

TEST(PlotTest, OnePointIsADot) {
  const std::string text = PlotCurves("t", "epoch", {{{7, 2}}}, {});
  EXPECT_TRUE(absl::StrContains(text, "*")) << text;
}

}  // namespace
}  // namespace traind
