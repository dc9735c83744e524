#include "worker/data/patch_warp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace traind {
namespace {

constexpr Extent3 kPatch{2, 33, 49};
constexpr int64_t kSlice = 33 * 49;

// The places that a patch's voxels come from, y and x of each, in voxels from the patch's begin. A
// volume whose values are their own places tells them, as values between voxels are linear.
struct Places {
  std::vector<float> yx;    // [D, H, W, 2]
  std::vector<float> mask;  // [D, H, W]: y of the nearest voxel

  double y(int64_t i) const { return yx[static_cast<size_t>(2 * i)]; }
  double x(int64_t i) const { return yx[static_cast<size_t>(2 * i + 1)]; }
};

Places PlacesOf(const WarpSettings& settings, uint64_t seed) {
  const PatchWarp warp(settings, kPatch, seed);
  const auto& [begin, extent] = std::make_pair(warp.begin(), warp.extent());
  EXPECT_EQ(begin[0], 0);
  EXPECT_EQ(extent[0], kPatch[0]);
  std::vector<float> box, rows;
  for (int64_t z = 0; z < extent[0]; ++z) {
    for (int64_t y = 0; y < extent[1]; ++y) {
      for (int64_t x = 0; x < extent[2]; ++x) {
        box.push_back(static_cast<float>(begin[1] + y));
        box.push_back(static_cast<float>(begin[2] + x));
        rows.push_back(static_cast<float>(begin[1] + y));
      }
    }
  }
  Places places;
  places.yx.resize(2 * 2 * kSlice);
  places.mask.resize(2 * kSlice);
  warp.WarpValues(box.data(), 2, places.yx.data());
  warp.WarpMask(rows.data(), places.mask.data());
  return places;
}

TEST(PatchWarpTest, WithoutChangesEachVoxelIsItsOwn) {
  const Places places = PlacesOf({}, 3);
  for (int64_t i = 0; i < 2 * kSlice; ++i) {
    EXPECT_EQ(places.y(i), i % kSlice / 49);
    EXPECT_EQ(places.x(i), i % 49);
  }
  EXPECT_FALSE(WarpSettings().any());
}

TEST(PatchWarpTest, ATurnKeepsTheMiddleAndAllDistances) {
  double least = 180, most = -180;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Places places = PlacesOf({30, 0, 0}, seed);
    const int64_t middle = 16 * 49 + 24, right = middle + 20, corner = 0;
    EXPECT_NEAR(places.y(middle), 16, 1e-4);
    EXPECT_NEAR(places.x(middle), 24, 1e-4);
    EXPECT_NEAR(std::hypot(places.y(corner) - 16, places.x(corner) - 24), std::hypot(16, 24), 1e-3);
    const double y = places.y(right) - 16, x = places.x(right) - 24;
    EXPECT_NEAR(std::hypot(y, x), 20, 1e-3);
    const double angle = std::atan2(y, x) * 180 / 3.14159265358979323846;
    // The line downwards is turned the same way.
    const int64_t below = middle + 10 * 49;
    EXPECT_NEAR((places.y(below) - 16) / 10, x / 20, 1e-4);
    EXPECT_NEAR((places.x(below) - 24) / 10, -y / 20, 1e-4);
    least = std::min(least, angle);
    most = std::max(most, angle);
  }
  EXPECT_GE(least, -30.01);
  EXPECT_LT(least, -25);
  EXPECT_GT(most, 25);
  EXPECT_LE(most, 30.01);
}

TEST(PatchWarpTest, SizesAreDrawnAroundOne) {
  double least = 2, most = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Places places = PlacesOf({0, 0.25, 0}, seed);
    const double size = 48 / (places.x(48) - places.x(0));
    EXPECT_NEAR(32 / (places.y(32 * 49) - places.y(0)), size, 1e-4);
    EXPECT_NEAR(places.x(0) + places.x(48), 48, 1e-3) << "the middle stays";
    least = std::min(least, size);
    most = std::max(most, size);
  }
  EXPECT_GE(least, 0.75 - 1e-4);
  EXPECT_LT(least, 0.8);
  EXPECT_GT(most, 1.2);
  EXPECT_LE(most, 1.25 + 1e-4);
}

TEST(PatchWarpTest, ElasticChangesAreSmoothAndAlikeInAllSlices) {
  double sum = 0, squares = 0, steepest = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Places places = PlacesOf({0, 0, 4}, seed);
    for (int64_t i = 0; i < kSlice; ++i) {
      EXPECT_EQ(places.y(i), places.y(kSlice + i));
      const double moved = places.x(i) - static_cast<double>(i % 49);
      if (i % 49 > 0) steepest = std::max(steepest, std::abs(places.x(i) - places.x(i - 1) - 1));
      sum += moved;
      squares += moved * moved;
    }
  }
  const double count = 300.0 * kSlice, mean = sum / count;
  EXPECT_NEAR(mean, 0, 0.2);
  // The weights of B-splines in two dimensions add up to a deviation of 0.46 to 0.5.
  EXPECT_NEAR(std::sqrt(squares / count - mean * mean) / 4, 0.48, 0.03);
  EXPECT_GT(steepest, 0.2);
  EXPECT_LT(steepest, 1.5) << "neighbours stay neighbours";
}

TEST(PatchWarpTest, AMaskTakesTheNearestVoxel) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Places places = PlacesOf({45, 0.3, 3}, seed);
    for (int64_t i = 0; i < 2 * kSlice; ++i) {
      const double nearest = places.mask[static_cast<size_t>(i)];
      EXPECT_EQ(nearest, std::round(nearest));
      EXPECT_LE(std::abs(nearest - places.y(i)), 0.5 + 1e-4);
    }
  }
}

TEST(PatchWarpTest, TheSeedAloneDecides) {
  const WarpSettings settings{45, 0.3, 3};
  EXPECT_EQ(PlacesOf(settings, 7).yx, PlacesOf(settings, 7).yx);
  EXPECT_NE(PlacesOf(settings, 7).yx, PlacesOf(settings, 8).yx);
}

}  // namespace
}  // namespace traind
