// A program that works for a Worker, driven over pipes as a Worker does.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "worker/rank_protocol/line_channel.h"
#include "worker/rank_protocol/messages.h"

extern char** environ;

namespace traind {

// Loaded machines are slow; a hang still ends the test.
inline constexpr absl::Duration kPatience = absl::Seconds(60);

// Threads: confined to one.
class TaskProgram {
 public:
  explicit TaskProgram(std::string program) {
    int in[2], out[2];
    EXPECT_EQ(pipe2(in, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    char* argv[] = {program.data(), nullptr};
    EXPECT_EQ(posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    channel_ = std::make_unique<rank_protocol::LineChannel>(out[0], in[1]);
  }
  ~TaskProgram() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  void Say(const rank_protocol::ToProcess& message) { SayLine(rank_protocol::Encode(message)); }
  void SayLine(const std::string& line) {
    const absl::Status said = channel_->WriteLine(line, kPatience);
    EXPECT_TRUE(said.ok()) << said.ToString();
  }

  // The next message of that type; others before it are kept in `heard`. A Failed
  // that is not waited for ends the wait.
  template <class M>
  std::optional<M> Await() {
    while (true) {
      const auto line = channel_->ReadLine(kPatience);
      if (!line.ok()) {
        ADD_FAILURE() << line.status().ToString();
        return std::nullopt;
      }
      const auto message = rank_protocol::DecodeFromProcess(*line);
      if (!message.ok()) {
        ADD_FAILURE() << "no protocol: " << *line;
        return std::nullopt;
      }
      heard.push_back(*message);
      if (const M* found = std::get_if<M>(&*message)) return *found;
      if (const auto* failed = std::get_if<rank_protocol::Failed>(&*message)) {
        ADD_FAILURE() << Name(failed->reason) << ": " << failed->message;
        return std::nullopt;
      }
    }
  }

  template <class M>
  int Count() const {
    int count = 0;
    for (const auto& message : heard) count += std::holds_alternative<M>(message);
    return count;
  }

  void CloseInput() { channel_.reset(); }
  void Signal(int signal) { kill(pid_, signal); }
  pid_t pid() const { return pid_; }

  // Its wait status; nullopt: still alive after kPatience.
  std::optional<int> AwaitExit() {
    const absl::Duration until = SystemClock().MonotonicNow() + kPatience;
    int status = 0;
    while (waitpid(pid_, &status, WNOHANG) == 0) {
      if (SystemClock().MonotonicNow() > until) return std::nullopt;
      usleep(2000);
    }
    pid_ = 0;
    return status;
  }

  std::vector<rank_protocol::FromProcess> heard;

 private:
  pid_t pid_ = 0;
  std::unique_ptr<rank_protocol::LineChannel> channel_;
};

}  // namespace traind
