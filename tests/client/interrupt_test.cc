// trainctl as a process: Ctrl-C, and its exit status in the shell.
#include <absl/strings/match.h>
#include <absl/time/clock.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <sstream>

#include "tests/client/fake_training_service.h"
#include "tests/client/sample_jobs.h"

extern char** environ;

namespace traind {
namespace {

constexpr char kTrainctl[] = "client/trainctl";

class Child {
 public:
  Child(std::vector<std::string> args, const std::string& err_path) {
    args.insert(args.begin(), kTrainctl);
    std::vector<char*> argv;
    for (std::string& arg : args) argv.push_back(arg.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 2, err_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
    EXPECT_EQ(posix_spawn(&pid_, kTrainctl, &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  ~Child() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  void Interrupt() { kill(pid_, SIGINT); }
  // Returns the exit code, or minus the signal; -1000 if the process has not ended in time.
  int Wait() {
    const absl::Time until = absl::Now() + absl::Seconds(20);
    int status = 0;
    while (waitpid(pid_, &status, WNOHANG) == 0) {
      if (absl::Now() > until) return -1000;
      absl::SleepFor(absl::Milliseconds(5));
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
};

std::string Text(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

bool Eventually(const std::function<bool()>& is_so) {
  const absl::Time until = absl::Now() + absl::Seconds(20);
  while (!is_so()) {
    if (absl::Now() > until) return false;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return true;
}

TEST(InterruptTest, CtrlCWhileWatchingExitsWith130AndSaysHowToComeBack) {
  FakeTrainingService service;
  std::atomic<bool> watched{false};
  service.on_get = [](const v1::GetJobRequest&, v1::Job* job) {
    *job = RunningJob();
    return grpc::Status::OK;
  };
  service.on_watch = [&](grpc::ServerContext* context, const v1::WatchJobRequest&,
                         const std::function<bool(const v1::Job&)>&) {
    watched = true;
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(5));
    return grpc::Status::CANCELLED;
  };
  FakeServer server(service);
  const std::string err = testing::TempDir() + "/watch.err";
  Child child({"--server", server.address(), "watch", "digits"}, err);
  ASSERT_TRUE(Eventually([&] { return watched.load(); }));
  child.Interrupt();
  EXPECT_EQ(child.Wait(), 130);
  EXPECT_TRUE(absl::StrContains(Text(err), "watch digits-7f3k2a")) << Text(err);
}

TEST(InterruptTest, CtrlCBeforeTheAnswerToSubmitNamesTheRequestId) {
  FakeTrainingService service;
  std::atomic<bool> submitted{false}, stop{false};
  service.on_submit = [&](const v1::SubmitRequest&, v1::SubmitReply*) {
    submitted = true;
    while (!stop) absl::SleepFor(absl::Milliseconds(5));
    return grpc::Status::OK;
  };
  FakeServer server(service);
  const std::string spec = testing::TempDir() + "/job.yaml";
  std::ofstream(spec) << "api: v1\ntask: {type: regression}\ndata: {train: a, target: y}\n";
  const std::string err = testing::TempDir() + "/submit.err";
  Child child({"--server", server.address(), "submit", "-f", spec, "--request-id", "monday"}, err);
  ASSERT_TRUE(Eventually([&] { return submitted.load(); }));
  child.Interrupt();
  EXPECT_EQ(child.Wait(), 130);
  stop = true;
  EXPECT_TRUE(absl::StrContains(Text(err), "--request-id monday")) << Text(err);
}

TEST(ProcessTest, UnknownVerbsExitWithTwo) {
  EXPECT_EQ(Child({"sumbit"}, testing::TempDir() + "/verb.err").Wait(), 2);
}

}  // namespace
}  // namespace traind
