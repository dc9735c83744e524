#include "worker/model/kernels/packed_half_layer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace traind {
namespace {

class PackedHalfLayerTest : public ::testing::TestWithParam<HalfKernel> {
 protected:
  void SetUp() override {
    if (!PackedHalfLayer::Available()) GTEST_SKIP() << "this core has no bf16";
    if (GetParam() == HalfKernel::kTiles && !HasHalfTiles()) GTEST_SKIP() << "it has no tiles";
  }

  std::vector<float> Normals(int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = normal_(random_);
    return values;
  }

  std::mt19937 random_{7};
  std::normal_distribution<float> normal_;
};

float Rounded(float value) {
  Bf16 half;
  Store(half, value);
  return Load(half);
}

TEST_P(PackedHalfLayerTest, ProductsAreThoseOfRoundedValues) {
  struct Size {
    int64_t rows, in, out;
  };
  for (const Size size : {Size{1, 1, 1}, Size{5, 7, 3}, Size{12, 64, 32}, Size{13, 33, 31},
                          Size{40, 70, 95}, Size{25, 128, 17}, Size{97, 65, 66}}) {
    SCOPED_TRACE(::testing::Message() << size.rows << " " << size.in << " " << size.out);
    const std::vector<float> x = Normals(size.rows * size.in), w = Normals(size.out * size.in),
                             b = Normals(size.out);
    PackedHalfLayer layer(GetParam());
    layer.Pack(w.data(), b.data(), size.out, size.in);
    std::vector<Bf16> half(static_cast<size_t>(size.rows * HalfWidth(size.in)));
    RoundRows(x.data(), size.rows, size.in, half.data());
    const auto count = static_cast<size_t>(size.rows * size.out);
    constexpr float kUntouched = -123;
    std::vector<float> y(count + 1, kUntouched);
    layer.Apply(half.data(), size.rows, y.data());
    EXPECT_EQ(y[count], kUntouched);
    const int64_t width = HalfWidth(size.out);
    std::vector<Bf16> relu(static_cast<size_t>(size.rows * width), Bf16{0x4000});
    layer.ApplyRelu(half.data(), size.rows, relu.data());
    for (int64_t i = 0; i < size.rows; ++i) {
      for (int64_t j = 0; j < size.out; ++j) {
        double sum = b[static_cast<size_t>(j)], size_of_terms = std::abs(sum);
        for (int64_t k = 0; k < size.in; ++k) {
          const double term =
              static_cast<double>(Rounded(x[static_cast<size_t>(i * size.in + k)])) *
              Rounded(w[static_cast<size_t>(j * size.in + k)]);
          sum += term;
          size_of_terms += std::abs(term);
        }
        EXPECT_NEAR(y[static_cast<size_t>(i * size.out + j)], sum, 1e-5 * size_of_terms);
        const double positive = std::max(0.0, sum);
        EXPECT_NEAR(Load(relu[static_cast<size_t>(i * width + j)]), positive,
                    positive / 256 + 1e-5 * size_of_terms);
      }
      for (int64_t j = size.out; j < width; ++j) {
        EXPECT_EQ(relu[static_cast<size_t>(i * width + j)].bits, 0);
      }
    }
  }
}

TEST_P(PackedHalfLayerTest, ARowsResultDoesNotDependOnTheRowsBesideIt) {
  constexpr int64_t kRows = 29, kIn = 50, kOut = 40;
  const std::vector<float> x = Normals(kRows * kIn), w = Normals(kOut * kIn), b = Normals(kOut);
  PackedHalfLayer layer(GetParam());
  layer.Pack(w.data(), b.data(), kOut, kIn);
  std::vector<Bf16> half(static_cast<size_t>(kRows * HalfWidth(kIn)));
  RoundRows(x.data(), kRows, kIn, half.data());
  std::vector<float> together(static_cast<size_t>(kRows * kOut)), alone(kOut);
  layer.Apply(half.data(), kRows, together.data());
  for (int64_t i = 0; i < kRows; ++i) {
    layer.Apply(half.data() + i * HalfWidth(kIn), 1, alone.data());
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + i * kOut)) << i;
  }
}

TEST_P(PackedHalfLayerTest, WhatIsNoNumberStaysSo) {
  const float x[] = {1, std::numeric_limits<float>::quiet_NaN()}, w[] = {1, 1}, b[] = {0};
  PackedHalfLayer layer(GetParam());
  layer.Pack(w, b, 1, 2);
  Bf16 half[kHalfPanel], relu[kHalfPanel];
  RoundRows(x, 1, 2, half);
  layer.ApplyRelu(half, 1, relu);
  EXPECT_TRUE(std::isnan(Load(relu[0])));
}

INSTANTIATE_TEST_SUITE_P(Kernels, PackedHalfLayerTest,
                         ::testing::Values(HalfKernel::kVectors, HalfKernel::kTiles),
                         [](const auto& info) {
                           return info.param == HalfKernel::kTiles ? "Tiles" : "Vectors";
                         });

}  // namespace
}  // namespace traind
