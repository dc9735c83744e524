// Gangs over NCCL: one rank on one GPU, and two ranks on two GPUs. Skipped on
// machines without them.
#include <absl/time/time.h>
#include <glob.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "common/base/reserved_port.h"
#include "tests/worker/model/model_of.h"
#include "worker/device/collective.h"
#include "worker/device/cuda_api.h"
#include "worker/device/guard.h"
#include "worker/learner/learner.h"

namespace traind {
namespace {

constexpr int64_t kRows = 1024, kNumeric = 16, kGangRows = 128;

// Counts without creating a CUDA context, which would not survive a fork.
size_t Gpus() {
  glob_t found{};
  const size_t count = glob("/dev/nvidia[0-9]*", 0, nullptr, &found) == 0 ? found.gl_pathc : 0;
  globfree(&found);
  return count;
}

std::unique_ptr<Learner> NewLearner(const CudaApi* cuda, Group* group) {
  LearnerOptions options;
  MlpOf(options.model).hidden = {64, 32};
  MlpOf(options.model).dropout = 0;
  options.shape.numeric = kNumeric;
  options.objective.loss = LossKind::kMse;
  options.cuda = cuda;
  options.group = group;
  LearnerData data;
  data.rows.rows = kRows;
  for (int64_t i = 0; i < kRows * kNumeric; ++i) {
    data.rows.numeric.push_back(std::sin(static_cast<float>(i)));
  }
  for (int64_t i = 0; i < kRows; ++i) data.values.push_back(std::cos(static_cast<float>(i)));
  auto learner = Learner::Create(options, std::move(data));
  if (!learner.ok()) return nullptr;
  std::vector<int32_t> order(static_cast<size_t>(kRows));
  std::iota(order.begin(), order.end(), 0);
  return (*learner)->SetOrder(order).ok() ? *std::move(learner) : nullptr;
}

// Takes eight steps in a gang, and with a single learner that has all rows.
// Returns 0 if they agree.
int RunRank(int rank, int world_size, int port) {
  setenv("CUDA_VISIBLE_DEVICES", std::to_string(rank).c_str(), 1);
  const auto cuda = LoadCuda();
  if (!cuda.ok()) return 10;
  GroupOptions options;
  options.port = port;
  options.rank = rank;
  options.world_size = world_size;
  options.cuda = *cuda;
  auto group = Group::Join(options);
  if (!group.ok() || (*group)->transport() != Transport::kNccl) return 11;
  const auto gang = NewLearner(*cuda, group->get()), alone = NewLearner(*cuda, nullptr);
  if (gang == nullptr || alone == nullptr) return 12;
  const int64_t share = kGangRows / world_size;
  for (int64_t step = 0; step < 8; ++step) {
    const int64_t begin = step % 4 * kGangRows;
    if (!gang->Step({begin + rank * share, share, kGangRows, 1e-3, 1}).ok()) return 13;
    if (!alone->Step({begin, kGangRows, kGangRows, 1e-3, 1}).ok()) return 14;
  }
  const auto a = gang->Save(), b = alone->Save();
  if (!a.ok() || !b.ok()) return 15;
  const std::vector<float>& mine = a->slots.at(kWeightsSlot);
  const std::vector<float>& wanted = b->slots.at(kWeightsSlot);
  for (size_t i = 0; i < mine.size(); ++i) {
    if (!(std::fabs(mine[i] - wanted[i]) < 1e-5f)) return 16;
  }
  return (*group)->Barrier().ok() ? 0 : 17;
}

// Rank 1 dies after two steps. Returns 0 if rank 0 learns of it in time, and ends.
int RunRankBesideADyingOne(int rank, int world_size, int port) {
  setenv("CUDA_VISIBLE_DEVICES", std::to_string(rank).c_str(), 1);
  const auto cuda = LoadCuda();
  if (!cuda.ok()) return 10;
  GroupOptions options;
  options.port = port;
  options.rank = rank;
  options.world_size = world_size;
  options.cuda = *cuda;
  options.timeout = absl::Seconds(5);
  auto group = Group::Join(options);
  if (!group.ok()) return 11;
  const auto gang = NewLearner(*cuda, group->get());
  if (gang == nullptr) return 12;
  const int64_t share = kGangRows / world_size;
  for (int64_t step = 0; step < 8; ++step) {
    if (rank == 1 && step == 2) _exit(0);
    absl::Status stepped = gang->Step({rank * share, share, kGangRows, 1e-3, 1});
    if (stepped.ok()) stepped = gang->Synchronize();
    if (!stepped.ok()) return step >= 2 && FaultOf(stepped) == Fault::kCollective ? 0 : 13;
  }
  return 14;
}

void RunGang(int world_size, int (*run)(int rank, int world_size, int port) = RunRank) {
  const int port = ReservePort();
  std::vector<pid_t> children;
  for (int rank = 0; rank < world_size; ++rank) {
    const pid_t child = fork();
    if (child == 0) _exit(run(rank, world_size, port));
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
}

TEST(NcclTest, OneRankTrainsAsAlone) {
  if (Gpus() < 1) GTEST_SKIP() << "no GPU";
  RunGang(1);
}

TEST(NcclTest, TwoRanksTrainAsOneWithAllRows) {
  if (Gpus() < 2) GTEST_SKIP() << "needs two GPUs (this test has never been run)";
  RunGang(2);
}

TEST(NcclTest, ADeadPeerIsNoticedInTime) {
  if (Gpus() < 2) GTEST_SKIP() << "needs two GPUs (this test has never been run)";
  RunGang(2, RunRankBesideADyingOne);
}

}  // namespace
}  // namespace traind
