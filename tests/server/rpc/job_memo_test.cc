#include "server/rpc/job_memo.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/base/job_layout.h"
#include "tests/server/rpc/rpc_house.h"

namespace traind {
namespace {

v1::Job Answer(const std::string& id, int64_t version) {
  v1::Job job;
  job.set_id(id);
  job.set_version(version);
  return job;
}

TEST(JobMemoTest, OnlyTheSameStampFindsAnAnswer) {
  JobMemo memo;
  v1::Job answer;
  EXPECT_FALSE(memo.Find("a", {1, 2, false}, &answer));
  memo.Keep("a", {1, 2, false}, Answer("a", 1));
  ASSERT_TRUE(memo.Find("a", {1, 2, false}, &answer));
  EXPECT_EQ(answer.id(), "a");
  EXPECT_FALSE(memo.Find("b", {1, 2, false}, &answer));
  EXPECT_FALSE(memo.Find("a", {2, 2, false}, &answer));
  EXPECT_FALSE(memo.Find("a", {1, 3, false}, &answer));
  EXPECT_FALSE(memo.Find("a", {1, 2, true}, &answer));
  memo.Keep("a", {2, 2, false}, Answer("a", 2));
  EXPECT_FALSE(memo.Find("a", {1, 2, false}, &answer));
  ASSERT_TRUE(memo.Find("a", {2, 2, false}, &answer));
  EXPECT_EQ(answer.version(), 2);
}

TEST(JobMemoTest, TheAnswerThatWasNotAskedForLongestGoes) {
  JobMemo memo;
  v1::Job answer;
  for (int i = 0; i < 32; ++i) memo.Keep(absl::StrCat(i), {}, Answer(absl::StrCat(i), 0));
  EXPECT_TRUE(memo.Find("0", {}, &answer));
  memo.Keep("one more", {}, Answer("one more", 0));
  EXPECT_TRUE(memo.Find("0", {}, &answer));
  EXPECT_FALSE(memo.Find("1", {}, &answer));
  EXPECT_TRUE(memo.Find("2", {}, &answer));
}

TEST(JobMemoTest, AnEndedJobIsToldAsItIsNow) {
  RpcHouse house;
  const std::string id = house.Submit(house.GoodSpec());
  const std::string folder = absl::StrCat(house.folder(), "/", JobDir(id));
  std::filesystem::create_directories(folder);
  grpc::ClientContext context;
  v1::CancelJobRequest cancel;
  cancel.set_id(id);
  v1::Job job;
  ASSERT_TRUE(house.client().CancelJob(&context, cancel, &job).ok());

  const v1::Job first = house.Get(id);
  EXPECT_EQ(first.state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(house.Get(id).SerializeAsString(), first.SerializeAsString());
  EXPECT_FALSE(first.pinned());
  grpc::ClientContext pinning;
  v1::PinJobRequest pin;
  pin.set_id(id);
  pin.set_pinned(true);
  ASSERT_TRUE(house.client().PinJob(&pinning, pin, &job).ok());
  EXPECT_TRUE(house.Get(id).pinned());
}

}  // namespace
}  // namespace traind
