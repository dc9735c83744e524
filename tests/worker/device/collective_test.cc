#include "worker/device/collective.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <absl/strings/match.h>
#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <thread>
#include <vector>

#include "common/base/reserved_port.h"
#include "worker/device/guard.h"

namespace traind {
namespace {

void OnRanks(int world_size, Transport transport, const std::function<void(Group&)>& body) {
  signal(SIGPIPE, SIG_IGN);  // as every rank does: a peer may be gone
  GroupOptions options;
  options.port = ReservePort();
  options.world_size = world_size;
  options.transport = transport;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world_size; ++rank) {
    threads.emplace_back([options, rank, &body]() mutable {
      options.rank = rank;
      const auto group = Group::Join(options);
      ASSERT_TRUE(group.ok()) << group.status().ToString();
      body(**group);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

class TransportTest : public testing::TestWithParam<Transport> {};
INSTANTIATE_TEST_SUITE_P(All, TransportTest,
                         testing::Values(Transport::kSharedMemory, Transport::kGloo),
                         [](const auto& info) { return std::string(TransportName(info.param)); });

TEST_P(TransportTest, CollectivesDoAsTheyPromise) {
  OnRanks(3, GetParam(), [](Group& group) {
    EXPECT_EQ(group.transport(), GetParam());
    std::vector<float> values(1000, static_cast<float>(group.rank() + 1));
    ASSERT_TRUE(group.Sum(absl::MakeSpan(values)).ok());
    EXPECT_EQ(values, std::vector<float>(1000, 6));
    std::vector<int64_t> numbers{group.rank() + (int64_t{1} << 40)};
    ASSERT_TRUE(group.Broadcast(absl::MakeSpan(numbers)).ok());
    EXPECT_EQ(numbers[0], int64_t{1} << 40);
    ASSERT_TRUE(group.Broadcast(absl::MakeSpan(values).first(0)).ok());
    at::Tensor tensor = at::full({7}, static_cast<double>(group.rank())).to(at::kFloat);
    group.Average(tensor);
    EXPECT_EQ(tensor.sum().item<float>(), 7);
    EXPECT_TRUE(group.Barrier().ok());
  });
}

// Two backward passes are accumulated and the second one ends the step, as in a learner.
TEST_P(TransportTest, GradientsBecomeTheMeanOverTheRanks) {
  OnRanks(2, GetParam(), [](Group& group) {
    std::vector<at::Tensor> parameters{at::ones({3, 2}), at::ones({5})};
    for (at::Tensor& parameter : parameters) parameter.set_requires_grad(true);
    GradientReducer reducer(group, parameters);
    const double factor = group.rank() + 1;  // 1 and 2
    for (int step = 0; step < 3; ++step) {
      for (const bool last : {false, true}) {
        if (last) reducer.BeforeForward();
        const at::Tensor loss = parameters[0].sum().mul(factor).add(parameters[1].sum());
        if (last) reducer.BeforeBackward();
        loss.backward();
      }
      at::Tensor flat =
          at::cat({parameters[0].grad().reshape({-1}), parameters[1].grad().reshape({-1})});
      reducer.Average({flat});
      EXPECT_EQ(flat.narrow(0, 0, 6).min().item<float>(), 3);  // 2 x (1 + 2) / 2
      EXPECT_EQ(flat.narrow(0, 0, 6).max().item<float>(), 3);
      EXPECT_EQ(flat.narrow(0, 6, 5).sum().item<float>(), 10);
      for (at::Tensor& parameter : parameters) parameter.mutable_grad().reset();
    }
  });
}

// A handwritten backward pass makes no calls before Average().
TEST_P(TransportTest, GradientsThatAutogradDidNotMakeAreAveragedToo) {
  OnRanks(2, GetParam(), [](Group& group) {
    std::vector<at::Tensor> parameters{at::ones({4}).set_requires_grad(true)};
    GradientReducer reducer(group, parameters);
    for (int step = 0; step < 2; ++step) {
      at::Tensor flat = at::full({4}, group.rank() == 0 ? 1.0 : 5.0);
      flat = flat.to(at::kFloat);
      reducer.Average({flat});
      EXPECT_EQ(flat.sum().item<float>(), 12);
    }
  });
}

TEST(CollectiveTest, RanksOfOneHostShareMemoryUnlessToldOtherwise) {
  OnRanks(2, Transport::kAuto,
          [](Group& group) { EXPECT_EQ(group.transport(), Transport::kSharedMemory); });
}

TEST(CollectiveTest, NcclWithoutAGpuIsRefused) {
  GroupOptions options;
  options.port = ReservePort();
  options.world_size = 1;
  options.transport = Transport::kNccl;
  const auto group = Group::Join(options);
  EXPECT_TRUE(absl::IsInvalidArgument(group.status())) << group.status().ToString();
  EXPECT_TRUE(absl::StrContains(group.status().message(), "nccl"));
}

TEST_P(TransportTest, APeerThatLeavesIsACollectiveFault) {
  OnRanks(2, GetParam(), [](Group& group) {
    ASSERT_TRUE(group.Barrier().ok());
    if (group.rank() == 1) return;
    EXPECT_EQ(FaultOf(group.Barrier()), Fault::kCollective);
  });
}

}  // namespace
}  // namespace traind
