// A process that waits for its next task gives freed memory back.
#include <absl/time/clock.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "worker/rank_protocol/line_channel.h"
#include "worker/rank_protocol/messages.h"
#include "worker/task/task_process.h"

namespace traind {
namespace {

namespace rp = rank_protocol;

constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr int64_t kTaskBytes = 256 << 20;

// Its task fills memory in blocks and frees it again, as training does.
class FillingEngine final : public Engine {
 public:
  std::unique_ptr<FoldTrainer> NewTrainer(const rp::Train&, TaskControl&, EventSink&,
                                          const Clock&) override {
    return nullptr;
  }
  absl::Status Predict(const rp::Predict&, InferenceControl&, EventSink&, const Clock&) override {
    std::vector<std::vector<char>> blocks(kTaskBytes / (64 << 10));
    for (auto& block : blocks) block.assign(64 << 10, 'x');
    return absl::OkStatus();
  }
};

int64_t ResidentBytes(pid_t pid) {
  std::ifstream statm("/proc/" + std::to_string(pid) + "/statm");
  int64_t pages = 0, resident = 0;
  statm >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

template <class M>
void Await(rp::LineChannel& channel) {
  while (true) {
    const auto line = channel.ReadLine(kPatience);
    ASSERT_TRUE(line.ok()) << line.status();
    const auto message = rp::DecodeFromProcess(*line);
    ASSERT_TRUE(message.ok()) << *line;
    if (std::holds_alternative<M>(*message)) return;
  }
}

TEST(IdleMemoryTest, AProcessWithoutATaskReturnsToItsStartingMemory) {
  int in[2], out[2];
  ASSERT_EQ(pipe2(in, O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(out, O_CLOEXEC), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    // As a Rank keeps what it frees for the next batch.
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    FillingEngine engine;
    _exit(RunTaskProcess(
        engine, [] { return std::string("cpu"); }, absl::Seconds(2)));
  }
  rp::LineChannel channel(out[0], in[1]);
  Await<rp::Ready>(channel);
  const int64_t start = ResidentBytes(pid);
  rp::Predict predict;
  predict.attempt = 1;
  ASSERT_TRUE(channel.WriteLine(rp::Encode(predict), kPatience).ok());
  Await<rp::Finished>(channel);
  // The next task, which comes at once, finds the memory that this one had.
  EXPECT_GT(ResidentBytes(pid) - start, kTaskBytes / 2);
  const absl::Time end = absl::Now() + kPatience;
  while (ResidentBytes(pid) - start > kTaskBytes / 20 && absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(20));
  }
  EXPECT_LE(ResidentBytes(pid) - start, kTaskBytes / 20);
  ASSERT_TRUE(channel.WriteLine(rp::Encode(predict), kPatience).ok());
  Await<rp::Finished>(channel);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

}  // namespace
}  // namespace traind
