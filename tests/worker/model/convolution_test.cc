// Gradients of convolutions in bfloat16 where oneDNN leaves a part of them unset: the memory that
// it takes is made dirty first.
#include "worker/model/networks/convolution.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/conv3d.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "worker/device/autocast.h"

namespace traind {
namespace {

struct Case {
  std::vector<int64_t> shape;  // of x
  int64_t out = 16, kernel = 3;
  ConvolutionSettings settings;
};

// Blocks of many sizes that are freed again hold numbers that are none.
void MakeMemoryDirty() {
  std::vector<void*> blocks;
  for (size_t bytes = 1024; bytes < 120'000; bytes += 512) {
    for (int i = 0; i < 4; ++i) {
      void* const block = std::malloc(bytes);
      ASSERT_NE(block, nullptr);
      std::memset(block, 0xff, bytes);
      blocks.push_back(block);
    }
  }
  for (void* const block : blocks) std::free(block);
}

// Returns the gradients of x, weight and bias.
std::vector<at::Tensor> Gradients(const Case& c, Precision precision) {
  at::manual_seed(5);
  const auto leaf = [](const at::Tensor& t) { return t.detach().set_requires_grad(true); };
  const bool volume = c.shape.size() == 5;
  const auto format = volume ? at::MemoryFormat::ChannelsLast3d : at::MemoryFormat::ChannelsLast;
  std::vector<int64_t> kernel = {c.out, c.shape[1] / c.settings.groups};
  kernel.insert(kernel.end(), volume ? 3 : 2, c.kernel);
  const at::Tensor x = leaf(at::randn(c.shape).contiguous(format));
  const at::Tensor weight = leaf(at::randn(kernel)), bias = leaf(at::randn({c.out}));
  at::Tensor y;
  {
    const Autocast autocast(at::kCPU, precision);
    y = Convolve(x, weight, bias, c.settings);
    EXPECT_EQ(y.scalar_type(), precision == Precision::kBf16 ? at::kBFloat16 : at::kFloat);
    EXPECT_EQ(CurrentAutocast(at::kCPU).enabled, precision == Precision::kBf16);
  }
  const at::Tensor by = at::randn(y.sizes()).to(y.scalar_type()).contiguous(format);
  MakeMemoryDirty();
  y.backward(by);
  return {x.grad(), weight.grad(), bias.grad()};
}

TEST(ConvolutionTest, InHalfPrecisionNoPartOfAGradientIsLeftUnset) {
  const Case cases[] = {
      {{2, 8, 2, 4, 4}, 16, 3, {1, 1}},
      {{3, 16, 2, 8, 8}, 16, 3, {1, 1}},
      {{2, 16, 4, 4, 4}, 16, 3, {1, 1}},
      {{2, 16, 1, 1}, 32, 3, {2, 1}},
      {{2, 16, 8, 1}, 16, 3, {2, 1}},
      {{2, 16, 4, 3}, 16, 5, {4, 2}},
      {{2, 16, 4, 1}, 16, 3, {2, 1, /*groups=*/16}},
      {{2, 16, 8, 8}, 32, 3, {2, 1}},
  };
  for (const Case& c : cases) {
    for (int again = 0; again < 3; ++again) {
      const std::vector<at::Tensor> half = Gradients(c, Precision::kBf16),
                                    whole = Gradients(c, Precision::kFp32);
      for (size_t i = 0; i < half.size(); ++i) {
        const double wrong = (half[i].to(at::kFloat) - whole[i]).abs().max().item<double>();
        // Numbers that are none are not below it either.
        EXPECT_TRUE(wrong <= 0.02 * (1 + whole[i].abs().max().item<double>()))
            << "gradient " << i << " of a " << c.shape.size() - 2 << "-d case of width "
            << c.shape.back() << ": " << wrong;
      }
    }
  }
}

// oneDNN wrote past the end of the gradient, so the process ended within a few rounds.
TEST(ConvolutionTest, AStridedPointwiseKernelDamagesNoMemory) {
  const int threads = at::get_num_threads();
  for (const int some : {3, 5}) {
    at::set_num_threads(some);
    for (int again = 0; again < 40; ++again) {
      Gradients({{8, 8, 16, 16}, 16, 1, {2, 0}}, Precision::kFp32);
    }
  }
  at::set_num_threads(threads);
}

TEST(ConvolutionTest, AStridedPointwiseKernelSeesEachPixelOfItsGrid) {
  for (const Case& c : {Case{{3, 4, 7, 6}, 5, 1, {2, 0}}, Case{{2, 4, 5, 4, 7}, 5, 1, {3, 0}},
                        Case{{2, 4, 9, 9}, 4, 1, {2, 0, /*groups=*/4}}}) {
    const bool volume = c.shape.size() == 5;
    std::vector<int64_t> kernel(c.shape.size(), 1);
    kernel[0] = c.out;
    kernel[1] = c.shape[1] / c.settings.groups;
    at::manual_seed(2);
    const at::Tensor x = at::randn(c.shape), weight = at::randn(kernel), bias = at::randn({c.out});
    const auto& [stride, padding, groups] = c.settings;
    const at::Tensor wanted = volume ? at::conv3d(x, weight, bias, stride, padding, 1, groups)
                                     : at::conv2d(x, weight, bias, stride, padding, 1, groups);
    const at::Tensor found = Convolve(x, weight, bias, c.settings);
    ASSERT_EQ(found.sizes(), wanted.sizes());
    EXPECT_LT((found - wanted).abs().max().item<double>(), 1e-5);
  }
}

}  // namespace
}  // namespace traind
