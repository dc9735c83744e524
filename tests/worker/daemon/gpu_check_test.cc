#include "worker/daemon/gpu_check.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace traind::worker {
namespace {

using ::testing::HasSubstr;

const std::vector<Slot> kGpus = {{"cuda", "A", "GPU-a", 1}, {"cuda", "B", "GPU-b", 1}};

// A Rank that is a shell script; it sees the GPU that it checks as $CUDA_VISIBLE_DEVICES.
class GpuCheckTest : public ::testing::Test {
 protected:
  GpuCheckTest() : rank_(absl::StrCat(::testing::TempDir(), "/rank-", getpid())) {}
  ~GpuCheckTest() override { std::filesystem::remove(rank_); }

  std::vector<absl::Status> Check(const std::string& script,
                                  absl::Duration patience = absl::Seconds(60)) {
    std::ofstream(rank_) << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(rank_, std::filesystem::perms::owner_all);
    return CheckGpus(rank_, kGpus, patience);
  }

  const std::string rank_;
};

TEST_F(GpuCheckTest, EachGpuHasAnAnswerOfItsOwn) {
  const auto checked = Check(
      "[ $1 = check-device ] || exit 2; [ $CUDA_VISIBLE_DEVICES = GPU-a ] && exit 0; "
      "echo 'the driver is too old' >&2; exit 1");
  ASSERT_EQ(checked.size(), 2u);
  EXPECT_TRUE(checked[0].ok()) << checked[0];
  EXPECT_EQ(checked[1], absl::UnavailableError("the driver is too old"));
}

TEST_F(GpuCheckTest, ARankThatDiesTellsItsSignal) {
  const auto checked = Check("kill -SEGV $$");
  EXPECT_TRUE(absl::IsUnavailable(checked[0]));
  EXPECT_THAT(checked[0].message(), HasSubstr("signal 11"));
}

TEST_F(GpuCheckTest, OneThatHangsDoesNotHoldTheOthers) {
  const auto checked =
      Check("[ $CUDA_VISIBLE_DEVICES = GPU-b ] && exit 0; sleep 600", absl::Seconds(3));
  EXPECT_TRUE(absl::IsDeadlineExceeded(checked[0])) << checked[0];
  EXPECT_TRUE(checked[1].ok()) << checked[1];
}

TEST_F(GpuCheckTest, AProgramThatIsNotThereIsACauseToo) {
  EXPECT_TRUE(absl::IsUnavailable(CheckGpus(rank_ + "-none", kGpus, absl::Seconds(60))[0]));
}

}  // namespace
}  // namespace traind::worker
