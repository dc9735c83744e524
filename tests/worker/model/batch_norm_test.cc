// The handwritten loops of a batch norm against LibTorch's operators.
#include "worker/model/networks/batch_norm.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace traind {
namespace {

struct Case {
  std::vector<int64_t> shape;
  bool add = false, relu = false;
  bool instance = false;
};

// Returns the output, the gradients by x, added value, weight and bias, and
// the running statistics.
std::vector<at::Tensor> Outputs(const Case& c, at::ScalarType dtype, bool loops) {
  at::set_num_threads(2);  // with one the operators add up thousands of numbers one by one
  at::manual_seed(5);
  const at::MemoryFormat format =
      c.shape.size() == 5 ? at::MemoryFormat::ChannelsLast3d : at::MemoryFormat::ChannelsLast;
  const auto leaf = [&](const at::Tensor& t) { return t.detach().set_requires_grad(true); };
  const int64_t channels = c.shape[1];
  const at::Tensor x = leaf((at::randn(c.shape) * 3 + 20).to(dtype).contiguous(format));
  const at::Tensor added = leaf(at::randn(c.shape).to(dtype).contiguous(format));
  const at::Tensor by = at::randn(c.shape).to(dtype).contiguous(format);
  BatchNorm norm{leaf(at::randn({channels})), leaf(at::randn({channels})), at::zeros({channels}),
                 at::ones({channels})};
  const at::Tensor y = c.instance
                           ? InstanceNormAct(norm.weight, norm.bias, x, c.relu, loops)
                           : NormAddAct(norm, x, c.add ? added : at::Tensor(), c.relu, true, loops);
  y.backward(by);
  std::vector<at::Tensor> all = {y.detach(),       x.grad(),          norm.weight.grad(),
                                 norm.bias.grad(), norm.running_mean, norm.running_var};
  if (c.add) all.push_back(added.grad());
  return all;
}

void ExpectAlike(const Case& c, at::ScalarType dtype, double tolerance) {
  const std::vector<at::Tensor> loops = Outputs(c, dtype, true),
                                operators = Outputs(c, dtype, false);
  ASSERT_EQ(loops.size(), operators.size());
  for (size_t i = 0; i < loops.size(); ++i) {
    const at::Tensor a = loops[i].to(at::kDouble), b = operators[i].to(at::kDouble);
    const double wrong = (a - b).abs().max().item<double>();
    EXPECT_LE(wrong, tolerance * (1 + b.abs().max().item<double>())) << "output " << i;
  }
}

TEST(BatchNormTest, PassesAreThoseOfTheOperators) {
  for (const bool add : {false, true}) {
    for (const bool relu : {false, true}) {
      SCOPED_TRACE(std::string(add ? "add " : "") + (relu ? "relu" : ""));
      ExpectAlike({{6, 32, 5, 7}, add, relu}, at::kFloat, 5e-6);
      ExpectAlike({{3, 5, 3, 3}, add, relu}, at::kFloat, 5e-6);
      ExpectAlike({{2, 8, 3, 4, 5}, add, relu}, at::kFloat, 5e-6);
      ExpectAlike({{9, 16, 20, 20}, add, relu}, at::kFloat, 5e-6);  // in several parts
    }
  }
}

TEST(BatchNormTest, PassesOfAnInstanceNormAreThoseOfTheOperators) {
  for (const bool relu : {false, true}) {
    ExpectAlike({{3, 5, 3, 3}, false, relu, true}, at::kFloat, 5e-6);
    ExpectAlike({{2, 8, 3, 4, 5}, false, relu, true}, at::kFloat, 5e-6);
    ExpectAlike({{3, 4, 8, 20, 20}, false, relu, true}, at::kFloat, 5e-6);  // in several parts
  }
  ExpectAlike({{2, 8, 4, 6, 5}, false, true, true}, at::kBFloat16, 1.5e-2);
}

TEST(BatchNormTest, AnInstanceNormOfASingleValueIsItsBias) {
  for (const bool loops : {false, true}) {
    const at::Tensor x = (at::ones({2, 3, 1, 1, 1}) * 7)
                             .contiguous(at::MemoryFormat::ChannelsLast3d)
                             .set_requires_grad(true);
    const at::Tensor y = InstanceNormAct(at::ones({3}) * 2, at::ones({3}) * 5, x, true, loops);
    // The value and its mean are scaled one by one, by 2 / sqrt(1e-5): their difference is rounded.
    EXPECT_LT(y.sub(5).abs().max().item<float>(), 1e-3);
    y.sum().backward();
    EXPECT_EQ(x.grad().abs().max().item<float>(), 0);
  }
}

TEST(BatchNormTest, ASampleIsNormalisedTheSameBesideAnyOther) {
  const at::Tensor x = at::randn({3, 4, 2, 5, 5}).contiguous(at::MemoryFormat::ChannelsLast3d);
  const at::Tensor all = InstanceNormAct(at::ones({4}), at::zeros({4}), x, false, true);
  for (int64_t i = 0; i < 3; ++i) {
    const at::Tensor alone =
        InstanceNormAct(at::ones({4}), at::zeros({4}), x.narrow(0, i, 1), false, true);
    EXPECT_TRUE(alone.equal(all.narrow(0, i, 1)));
  }
}

// Roundings differ, because the operators round the norm's output before adding and ReLU.
TEST(BatchNormTest, PassesOfBf16AreThoseOfTheOperatorsWithinItsRounding) {
  for (const bool add : {false, true}) {
    ExpectAlike({{6, 32, 5, 7}, add, false}, at::kBFloat16, 1.5e-2);
  }
  ExpectAlike({{6, 32, 5, 7}, false, true}, at::kBFloat16, 1.5e-2);
}

TEST(BatchNormTest, SumsDoNotDependOnTheNumberOfThreads) {
  const Case c{{9, 16, 20, 20}, true, true};
  at::set_num_threads(1);
  const std::vector<at::Tensor> one = Outputs(c, at::kFloat, true);
  at::set_num_threads(2);
  const std::vector<at::Tensor> two = Outputs(c, at::kFloat, true);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(one[i].equal(two[i])) << "output " << i;
}

TEST(BatchNormTest, OutsideOfTrainingTheRunningStatisticsAnswer) {
  const BatchNorm norm{at::ones({2}) * 3, at::ones({2}), at::ones({2}) * 5, at::ones({2}) * 4};
  const at::Tensor x = (at::ones({1, 2, 1, 1}) * 7).contiguous(at::MemoryFormat::ChannelsLast);
  for (const bool training : {false, true}) {  // a single value has no variance
    const at::Tensor y = NormAddAct(norm, x, {}, true, training, true);
    EXPECT_NEAR(y[0][0][0][0].item<float>(), 4, 1e-4);
    EXPECT_EQ(norm.running_mean[0].item<float>(), 5);
  }
}

}  // namespace
}  // namespace traind
