#include "common/data/volume/components.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace traind {
namespace {

struct Mask {
  int64_t depth, height, width;
  std::vector<uint8_t> labels;

  int64_t At(int64_t z, int64_t y, int64_t x) const { return (z * height + y) * width + x; }
};

// Returns the voxels of the component that has this one, and clears them in `left`.
std::vector<int64_t> Flood(const Mask& mask, int64_t first, std::vector<uint8_t>& left) {
  const uint8_t label = left[static_cast<size_t>(first)];
  std::vector<int64_t> voxels = {first};
  left[static_cast<size_t>(first)] = 0;
  for (size_t i = 0; i < voxels.size(); ++i) {
    const int64_t z = voxels[i] / (mask.height * mask.width),
                  y = voxels[i] / mask.width % mask.height, x = voxels[i] % mask.width;
    for (int64_t near = 0; near < 27; ++near) {
      const int64_t a = z + near / 9 - 1, b = y + near / 3 % 3 - 1, c = x + near % 3 - 1;
      if (a < 0 || b < 0 || c < 0 || a >= mask.depth || b >= mask.height || c >= mask.width) {
        continue;
      }
      uint8_t& of_near = left[static_cast<size_t>(mask.At(a, b, c))];
      if (of_near != label) continue;
      of_near = 0;
      voxels.push_back(mask.At(a, b, c));
    }
  }
  return voxels;
}

// What is kept by filling from each voxel in turn.
std::vector<uint8_t> LargestByFlood(const Mask& mask) {
  std::vector<uint8_t> left = mask.labels, kept(mask.labels.size());
  std::vector<std::vector<int64_t>> largest(256);
  for (size_t i = 0; i < left.size(); ++i) {
    if (left[i] == 0) continue;
    std::vector<int64_t> voxels = Flood(mask, static_cast<int64_t>(i), left);
    std::vector<int64_t>& before = largest[mask.labels[i]];
    if (voxels.size() > before.size()) before = std::move(voxels);
  }
  for (size_t label = 1; label < largest.size(); ++label) {
    for (const int64_t voxel : largest[label]) {
      kept[static_cast<size_t>(voxel)] = static_cast<uint8_t>(label);
    }
  }
  return kept;
}

std::vector<uint8_t> Largest(const Mask& mask, int64_t classes) {
  LargestComponents components(mask.height, mask.width, classes);
  const auto plane = static_cast<size_t>(mask.height * mask.width);
  const auto labels = absl::MakeConstSpan(mask.labels);
  for (size_t z = 0; z < static_cast<size_t>(mask.depth); ++z) {
    components.Add(labels.subspan(z * plane, plane));
  }
  std::vector<uint8_t> kept(mask.labels.size(), 9);
  for (size_t z = 0; z < static_cast<size_t>(mask.depth); ++z) {
    components.Read(static_cast<int64_t>(z), absl::MakeSpan(kept).subspan(z * plane, plane));
  }
  return kept;
}

TEST(LargestComponentsTest, TheyAreThoseOfAFloodFill) {
  std::mt19937 random(3);
  for (int i = 0; i < 400; ++i) {
    const auto below = [&random](int64_t most) {
      return static_cast<int64_t>(random() % static_cast<uint64_t>(most));
    };
    Mask mask{1 + below(6), 1 + below(9), 1 + below(9), {}};
    const int64_t classes = 1 + below(3), density = 1 + below(20);
    for (int64_t k = 0; k < mask.depth * mask.height * mask.width; ++k) {
      mask.labels.push_back(below(20) < density ? static_cast<uint8_t>(1 + below(classes)) : 0);
    }
    ASSERT_EQ(Largest(mask, classes), LargestByFlood(mask))
        << i << ": " << mask.depth << " x " << mask.height << " x " << mask.width;
  }
}

TEST(LargestComponentsTest, ACornerConnectsAndAGapDoesNot) {
  const Mask mask{2, 2, 5, {1, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}};
  // The voxels at (0, 0, 0) and (1, 1, 1) share a corner, those at (0, 0, 4) and (0, 1, 4) a face.
  // Both components have two voxels; the first one counts.
  EXPECT_EQ(Largest(mask, 1), (std::vector<uint8_t>{1, 0, 0, 0, 0, 0, 0, 0, 0, 0,  //
                                                    0, 0, 0, 0, 0, 0, 1, 0, 0, 0}));
}

TEST(LargestComponentsTest, EachClassKeepsItsOwnAndNoneIsMadeUp) {
  const Mask mask{1, 1, 9, {2, 1, 1, 0, 2, 2, 1, 0, 2}};
  EXPECT_EQ(Largest(mask, 3), (std::vector<uint8_t>{0, 1, 1, 0, 2, 2, 0, 0, 0}));
  const Mask empty{2, 1, 2, {0, 0, 0, 0}};
  EXPECT_EQ(Largest(empty, 1), empty.labels);
}

}  // namespace
}  // namespace traind
