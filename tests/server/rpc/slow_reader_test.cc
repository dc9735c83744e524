// A client that opens a stream with much to say and does not read it.
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>
#include <absl/time/clock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "common/base/job_layout.h"
#include "tests/contract/stored_jobs.h"
#include "tests/server/rpc/rpc_house.h"

namespace traind {
namespace {

constexpr int kLines = 1'000'000;
constexpr int64_t kLineBytes = 128;

// Of files, by this process.
int64_t BytesRead() {
  std::ifstream io("/proc/self/io");
  for (std::string line; std::getline(io, line);) {
    absl::string_view text = line;
    int64_t bytes = 0;
    if (absl::ConsumePrefix(&text, "rchar: ") && absl::SimpleAtoi(text, &bytes)) return bytes;
  }
  ADD_FAILURE() << "the kernel does not count";
  return 0;
}

TEST(SlowReaderTest, ALogStaysOnTheDiskUntilItsReaderWantsIt) {
  RpcHouse house;
  const Job job = FullJob();
  ASSERT_EQ(house.store().Commit(Change({job})), absl::OkStatus());
  const std::filesystem::path log =
      absl::StrCat(house.folder(), "/", RankLogPath(job.id, job.attempts[0].id, 0));
  std::filesystem::create_directories(log.parent_path());
  {
    std::ofstream out(log);
    for (int i = 0; i < kLines; ++i) {
      std::string line = absl::StrCat("2026-01-02T03:04:05.678Z I ", i, " ");
      line.resize(kLineBytes - 1, '.');
      out << line << '\n';
    }
  }
  const int64_t before = BytesRead();
  grpc::ClientContext context;
  v1::GetLogsRequest request;
  request.set_id(job.id);
  const auto stream = house.client().GetLogs(&context, request);
  // It has begun, and stands still.
  ASSERT_TRUE(Eventually([&] { return BytesRead() - before > kLineBytes * 100; }));
  int64_t read = 0;
  ASSERT_TRUE(Eventually([&] {
    const int64_t was = std::exchange(read, BytesRead() - before);
    absl::SleepFor(absl::Milliseconds(200));
    return read - was < kLineBytes * 100;
  }));
  EXPECT_LT(read, kLines * kLineBytes / 4);
  EXPECT_EQ(house.Get(job.id).id(), job.id);  // others are answered
  int64_t lines = 0;
  for (v1::LogsReply reply; stream->Read(&reply);) lines += reply.lines_size();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(lines, kLines);
}

}  // namespace
}  // namespace traind
