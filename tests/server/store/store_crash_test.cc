// Kills a writing process at arbitrary moments: everything that it reported as committed is there
// afterwards, and nothing is there in part.
//   store_crash_test            the test
//   store_crash_test --write F  the process to be killed: commits Jobs into F and
//                               prints each number when it is durable
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <random>
#include <string>

#include "server/store/sqlite_store.h"
#include "tests/contract/stored_jobs.h"

extern char** environ;

namespace traind {
namespace {

std::string IdOf(int64_t n) { return absl::StrCat("job-", n); }

int Write(const std::string& path) {
  auto store = SqliteStore::Open(path);
  if (!store.ok()) {
    std::fprintf(stderr, "%s\n", store.status().ToString().c_str());
    return 1;
  }
  const auto snapshot = (*store)->LoadSnapshot();
  if (!snapshot.ok()) return 1;
  int64_t next = static_cast<int64_t>(snapshot->active.size());
  while (true) {
    // Each turn adds a Job and changes the one before.
    Mutations m = Change({NewJob(IdOf(next))});
    if (next > 0) {
      Job before = Next((*store)->GetJob(IdOf(next - 1)).value());
      for (Task& task : before.tasks) task.epochs_done = 1;
      m.jobs.push_back(std::make_shared<const Job>(before));
    }
    m.last_attempt = next + 1;
    if (const absl::Status status = (*store)->Commit(m); !status.ok()) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      return 1;
    }
    if (next % 40 == 0 && !(*store)->CheckpointLog().ok()) return 1;
    const std::string line = absl::StrCat(next, "\n");
    if (write(STDOUT_FILENO, line.data(), line.size()) < 0) return 1;
    ++next;
  }
}

struct Writer {
  pid_t pid = 0;
  int out = -1;
};

Writer Spawn(const std::string& path) {
  int pipe_fds[2];
  EXPECT_EQ(pipe(pipe_fds), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, pipe_fds[0]);
  std::string write = "--write", file = path, self = "/proc/self/exe";
  char* argv[] = {self.data(), write.data(), file.data(), nullptr};
  Writer writer;
  EXPECT_EQ(posix_spawn(&writer.pid, "/proc/self/exe", &actions, nullptr, argv, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_fds[1]);
  writer.out = pipe_fds[0];
  return writer;
}

// Kills the writer `lines` lines into its work, and a little later; returns the last number that it
// printed, or -1 if there is none.
int64_t KillAfter(const Writer& writer, int lines, useconds_t more_us) {
  std::string text;
  char buffer[256];
  int seen = 0;
  while (seen < lines) {
    const ssize_t n = read(writer.out, buffer, sizeof buffer);
    if (n <= 0) break;
    for (ssize_t i = 0; i < n; ++i) seen += buffer[i] == '\n';
    text.append(buffer, n);
  }
  usleep(more_us);  // to hit each part of a commit, not to wait for something
  kill(writer.pid, SIGKILL);
  int status = 0;
  waitpid(writer.pid, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself";
  ssize_t n = 0;
  while ((n = read(writer.out, buffer, sizeof buffer)) > 0) text.append(buffer, n);
  close(writer.out);
  text.resize(text.rfind('\n') + 1);  // a cut line does not count
  const size_t last = text.size() < 2 ? std::string::npos : text.rfind('\n', text.size() - 2);
  int64_t number = -1;
  if (!text.empty()) {
    EXPECT_TRUE(absl::SimpleAtoi(
        absl::string_view(text).substr(last == std::string::npos ? 0 : last + 1), &number));
  }
  return number;
}

TEST(StoreCrashTest, NoAcknowledgedCommitIsLostToKills) {
  std::string folder = absl::StrCat(testing::TempDir(), "/crash.XXXXXX");
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/traind.db";
  constexpr int kKills = 40;
  std::mt19937 random(20261121);
  int64_t acknowledged = -1;
  for (int kill = 0; kill < kKills; ++kill) {
    const Writer writer = Spawn(path);
    const int64_t said = KillAfter(writer, 1 + static_cast<int>(random() % 30), random() % 2000);
    acknowledged = std::max(acknowledged, said);

    auto store = SqliteStore::Open(path);
    ASSERT_TRUE(store.ok()) << store.status();
    const Snapshot snapshot = (*store)->LoadSnapshot().value();
    const auto jobs = static_cast<int64_t>(snapshot.active.size());
    ASSERT_GE(jobs, acknowledged + 1) << "after kill " << kill;
    ASSERT_EQ(snapshot.last_attempt, jobs);
    for (int64_t i = 0; i < jobs; ++i) {
      const Job& job = snapshot.active[i];
      ASSERT_EQ(job.id, IdOf(i));
      // The turn that added the next Job changed this one completely.
      for (const Task& task : job.tasks) ASSERT_EQ(task.epochs_done, i + 1 < jobs ? 1 : 0);
    }
  }
  EXPECT_GT(acknowledged, kKills) << "the writers came to do something";
}

}  // namespace
}  // namespace traind

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--write") return traind::Write(argv[2]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
