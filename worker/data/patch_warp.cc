#include "worker/data/patch_warp.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "worker/data/random.h"

namespace traind {
namespace {

constexpr int64_t kBetweenPoints = 16;  // voxels

// The weights of four control points around a place that is `t` of the way from the second to the
// third.
std::array<double, 4> SplineWeights(double t) {
  const double u = 1 - t, t2 = t * t, t3 = t2 * t;
  return {u * u * u / 6, (3 * t3 - 6 * t2 + 4) / 6, (-3 * t3 + 3 * t2 + 3 * t + 1) / 6, t3 / 6};
}

// A smooth random displacement of a slice's voxels.
class Displacement {
 public:
  Displacement(double deviation, int64_t height, int64_t width, Random& random)
      : columns_(PointsFor(width)) {
    points_.resize(static_cast<size_t>(PointsFor(height) * columns_ * 2));
    for (double& value : points_) value = deviation * random.Normal();
  }

  // Returns y and x.
  std::array<double, 2> At(int64_t y, int64_t x) const {
    const auto by_y = SplineWeights(Part(y)), by_x = SplineWeights(Part(x));
    std::array<double, 2> sum = {0, 0};
    for (int64_t i = 0; i < 4; ++i) {
      for (int64_t j = 0; j < 4; ++j) {
        const int64_t point = (y / kBetweenPoints + i) * columns_ + x / kBetweenPoints + j;
        const double weight = by_y[static_cast<size_t>(i)] * by_x[static_cast<size_t>(j)];
        for (size_t axis = 0; axis < 2; ++axis) {
          sum[axis] += weight * points_[static_cast<size_t>(2 * point) + axis];
        }
      }
    }
    return sum;
  }

 private:
  static int64_t PointsFor(int64_t extent) { return (extent - 1) / kBetweenPoints + 4; }
  static double Part(int64_t at) {
    return static_cast<double>(at % kBetweenPoints) / static_cast<double>(kBetweenPoints);
  }

  const int64_t columns_;
  std::vector<double> points_;  // [rows, columns, 2]
};

// Makes places count from the smallest voxel that they need. Returns it, and sets how many are
// needed: the one behind each place, too, and one more, as a place may be rounded up here.
int64_t FitBox(std::vector<float>& places, int64_t& extent) {
  const auto [least, most] = std::minmax_element(places.begin(), places.end());
  const auto begin = static_cast<int64_t>(std::floor(*least));
  extent = static_cast<int64_t>(std::floor(*most)) + 3 - begin;
  for (float& place : places) place -= static_cast<float>(begin);
  return begin;
}

}  // namespace

PatchWarp::PatchWarp(const WarpSettings& settings, const Extent3& patch, uint64_t seed)
    : patch_(patch), begin_{0, 0, 0}, extent_(patch) {
  constexpr double kPi = 3.14159265358979323846;
  Random random(seed);
  const auto drawn = [&random] { return 2 * random.Uniform() - 1; };
  const double angle = settings.rotate * kPi / 180 * drawn();
  const double size = 1 + settings.scale * drawn();
  const double along = std::cos(angle) / size, across = std::sin(angle) / size;
  const int64_t height = patch[1], width = patch[2];
  const Displacement displacement(settings.elastic, height, width, random);
  const double middle_y = static_cast<double>(height - 1) / 2;
  const double middle_x = static_cast<double>(width - 1) / 2;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const double from_y = static_cast<double>(y) - middle_y;
      const double from_x = static_cast<double>(x) - middle_x;
      const auto [more_y, more_x] = displacement.At(y, x);
      y_.push_back(static_cast<float>(middle_y + along * from_y + across * from_x + more_y));
      x_.push_back(static_cast<float>(middle_x - across * from_y + along * from_x + more_x));
    }
  }
  begin_[1] = FitBox(y_, extent_[1]);
  begin_[2] = FitBox(x_, extent_[2]);
}

void PatchWarp::WarpValues(const float* from, int64_t channels, float* to) const {
  const int64_t line = extent_[2] * channels;
  for (int64_t z = 0; z < patch_[0]; ++z, from += extent_[1] * line) {
    for (size_t i = 0; i < y_.size(); ++i) {
      const auto y = static_cast<int64_t>(y_[i]), x = static_cast<int64_t>(x_[i]);
      const float down = y_[i] - static_cast<float>(y), right = x_[i] - static_cast<float>(x);
      const float* const upper = from + y * line + x * channels;
      const float* const lower = upper + line;
      for (int64_t c = 0; c < channels; ++c) {
        const float above = upper[c] + right * (upper[channels + c] - upper[c]);
        const float below = lower[c] + right * (lower[channels + c] - lower[c]);
        *to++ = above + down * (below - above);
      }
    }
  }
}

void PatchWarp::WarpMask(const float* from, float* to) const {
  for (int64_t z = 0; z < patch_[0]; ++z, from += extent_[1] * extent_[2]) {
    for (size_t i = 0; i < y_.size(); ++i) {
      const auto y = static_cast<int64_t>(y_[i] + 0.5f), x = static_cast<int64_t>(x_[i] + 0.5f);
      *to++ = from[y * extent_[2] + x];
    }
  }
}

}  // namespace traind
