// The daemon's loop with real processes, a real stream and the real clock.
#include "worker/daemon/daemon.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/time/clock.h>
#include <dirent.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <thread>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "tests/worker/daemon/fake_coordinator.h"

namespace traind::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kFakeRank[] = "tests/worker/daemon/fake_rank";

v1::CoordinatorMessage Start(int64_t attempt, const std::string& script, int64_t remaining_ms = -1,
                             std::vector<int> slots = {0}) {
  v1::CoordinatorMessage message;
  v1::StartTask& start = *message.mutable_start();
  start.set_attempt(attempt);
  start.set_job("job-1");
  start.set_kind(v1::StartTask::KIND_TRAIN);
  start.set_spec_json(script);
  start.set_remaining_ms(remaining_ms);
  start.set_stop_ms(-1);
  for (const int slot : slots) start.add_slots(slot);
  start.set_world_size(static_cast<int>(slots.size()));
  start.set_table("cache/t.table");
  start.set_epochs(3);
  start.mutable_publish()->set_metric("accuracy");
  start.mutable_publish()->set_spec_folds(2);
  return message;
}

v1::CoordinatorMessage Prepare(int64_t attempt, const std::string& script = "{}") {
  v1::CoordinatorMessage message = Start(attempt, script);
  message.mutable_start()->set_kind(v1::StartTask::KIND_PREPARE);
  message.mutable_start()->clear_slots();
  return message;
}

v1::CoordinatorMessage Stop(int64_t attempt, v1::StopAttempt::Mode mode) {
  v1::CoordinatorMessage message;
  message.mutable_stop()->set_attempt(attempt);
  message.mutable_stop()->set_mode(mode);
  message.mutable_stop()->set_why("the user asked to finish");
  return message;
}

std::vector<int64_t> Sequences(const std::vector<v1::WorkerMessage>& messages) {
  std::vector<int64_t> sequences;
  for (const v1::WorkerMessage& message : messages) sequences.push_back(message.sequence());
  return sequences;
}

// Folders in /proc of this test's processes that run the fake Rank.
std::vector<std::filesystem::path> Ranks() {
  std::vector<std::filesystem::path> ranks;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::error_code error;
    const auto program = std::filesystem::read_symlink(entry.path() / "exe", error);
    if (error || program.filename() != "fake_rank") continue;
    const std::string text = ReadFile(entry.path() / "stat").value_or("");
    const size_t paren = text.rfind(')');
    int parent = 0;
    char state = 0;
    if (paren != std::string::npos &&
        sscanf(text.c_str() + paren + 1, " %c %d", &state, &parent) == 2 && parent == getpid() &&
        state != 'Z') {
      ranks.push_back(entry.path());
    }
  }
  return ranks;
}

int CountRanks() { return static_cast<int>(Ranks().size()); }

// Those of them whose private memory is limited.
int CountLimitedRanks() {
  int count = 0;
  for (const std::filesystem::path& rank : Ranks()) {
    const std::string text = ReadFile(rank / "limits").value_or("");
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
      count += absl::StartsWith(line, "Max data size") && words.at(3) != "unlimited";
    }
  }
  return count;
}

class DaemonTest : public ::testing::Test {
 protected:
  DaemonTest() {
    state_ = absl::StrCat("/tmp/traind-daemon-test-", getpid(), "-", ++counter_);
    std::filesystem::create_directories(state_);
    coordinator_ = std::make_unique<FakeCoordinator>(absl::StrCat("unix:", state_, "/worker.sock"));
    options_.state_dir = state_;
    options_.coordinator = absl::StrCat("unix:", state_, "/worker.sock");
    options_.programs = {{"trainrank", kFakeRank}, {"trainprep", kFakeRank}};
    options_.stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    options_.stop_grace = absl::Seconds(5);
    options_.core.cores = 2;
  }
  ~DaemonTest() override {
    StopDaemon();
    coordinator_.reset();
    close(options_.stop_fd);
    std::filesystem::remove_all(state_);
    EXPECT_EQ(CountRanks(), 0);
  }

  void StartDaemon(int slots = 2) {
    auto daemon = Daemon::Create(
        options_, std::vector<Slot>(static_cast<size_t>(slots), Slot{"cpu", "test", "", 1}),
        [this](const PublishRequest& request) -> absl::StatusOr<PublishedPrediction> {
          const std::lock_guard<std::mutex> lock(mutex_);
          published_.push_back(request);
          PublishedPrediction prediction;
          prediction.number = static_cast<int>(published_.size());
          prediction.changed = true;
          return prediction;
        });
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    daemon_ = *std::move(daemon);
    thread_ = std::thread([this] {
      EXPECT_TRUE(daemon_->Run().ok());
      ended_ = true;
    });
  }
  void StopDaemon() {
    if (!thread_.joinable()) return;
    const uint64_t one = 1;
    EXPECT_EQ(write(options_.stop_fd, &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
    thread_.join();
    daemon_.reset();
  }
  template <class Condition>
  bool Eventually(Condition condition) {
    const absl::Time until = absl::Now() + absl::Seconds(20);
    while (!condition()) {
      if (absl::Now() > until) return false;
      absl::SleepFor(absl::Milliseconds(5));
    }
    return true;
  }
  std::vector<PublishRequest> published() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return published_;
  }
  std::string Log(int64_t attempt, int rank = 0) {
    return ReadFile(absl::StrCat(state_, "/", RankLogPath("job-1", attempt, rank)))
        .value_or("(none)");
  }

  static inline int counter_ = 0;
  std::string state_;
  DaemonOptions options_;
  std::unique_ptr<FakeCoordinator> coordinator_;
  std::unique_ptr<Daemon> daemon_;
  std::thread thread_;
  std::atomic<bool> ended_{false};
  std::mutex mutex_;
  std::vector<PublishRequest> published_;
};

TEST_F(DaemonTest, FactsOfATaskArriveInOrderAndAreNumbered) {
  coordinator_->Start();
  StartDaemon();
  coordinator_->Send(
      Start(7, R"({"script":["stderr:hi","stdout:rubbish","started","probe","train:3","epoch",
             "checkpoint","fold","fold:epochs"]})"));
  EXPECT_EQ(coordinator_->WaitForEnded(7).reason(), v1::ATTEMPT_END_REASON_COMPLETED);
  std::vector<int> kinds;
  for (const v1::WorkerMessage& message : coordinator_->messages()) {
    kinds.push_back(message.report().report_case());
  }
  using Report = v1::AttemptReport;
  EXPECT_THAT(kinds, ElementsAre(Report::kResources, Report::kStarted, Report::kProbe,
                                 Report::kEpoch, Report::kCheckpointSaved, Report::kFoldSaved,
                                 Report::kFoldSaved, Report::kResources, Report::kEnded));
  EXPECT_THAT(Sequences(coordinator_->messages()), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_GT(coordinator_->progress_count(), 0);
  EXPECT_THAT(Log(7), HasSubstr("hi\n"));
  EXPECT_THAT(Log(7), HasSubstr("not understood"));
  const v1::Hello hello = coordinator_->hellos()[0];
  EXPECT_EQ(hello.worker_id(), daemon_->worker_id());
  EXPECT_EQ(hello.pid(), getpid());
  EXPECT_THAT(hello.slots(), SizeIs(2));
}

TEST_F(DaemonTest, AWarmRankIsThereBeforeItIsNeededAndIsReplacedWhenItDies) {
  coordinator_->Start();
  StartDaemon();
  EXPECT_TRUE(coordinator_->WaitForWarmRanks(2));
  EXPECT_EQ(CountRanks(), 2);
  coordinator_->Send(Start(7, R"({"script":["signal:9"]})"));
  const v1::Ended ended = coordinator_->WaitForEnded(7);
  EXPECT_EQ(ended.reason(), v1::ATTEMPT_END_REASON_RANK_DIED);
  EXPECT_EQ(ended.message(), "rank 0 died: signal 9 (Killed)");
  EXPECT_TRUE(Eventually(
      [&] { return CountRanks() == 2 && coordinator_->last_heartbeat().warm_ranks() == 2; }));
}

TEST_F(DaemonTest, FactsWithoutAnAckAreSentAgainInOrderAfterAReconnect) {
  coordinator_->Start();
  coordinator_->set_acks(false);
  StartDaemon();
  coordinator_->Send(Start(7, R"({"script":["started","probe","train"]})"));
  ASSERT_TRUE(coordinator_->WaitFor([](const auto& messages) { return messages.size() == 3; }));
  const v1::CoordinatorMessage ack_first = [] {
    v1::CoordinatorMessage message;
    message.mutable_ack()->set_sequence(1);
    return message;
  }();
  coordinator_->Send(ack_first);
  // The Ack has been read once a later message has its effect.
  coordinator_->Send(Start(8, R"({"script":["started","train"]})", -1, {1}));
  ASSERT_TRUE(coordinator_->WaitFor([](const auto& messages) { return messages.size() == 5; }));
  coordinator_->Stop();
  coordinator_->Start();
  ASSERT_TRUE(coordinator_->WaitFor([](const auto& messages) { return messages.size() == 9; }));
  EXPECT_THAT(Sequences(coordinator_->messages()), ElementsAre(1, 2, 3, 4, 5, 2, 3, 4, 5));
  EXPECT_EQ(coordinator_->facts_before_a_heartbeat(), 4)
      << "what a heartbeat does not list has told all that it will";
  ASSERT_TRUE(coordinator_->WaitForHellos(2));
  const std::vector<v1::Hello> hellos = coordinator_->hellos();
  EXPECT_THAT(hellos[1].running_attempts(), ElementsAre(7, 8)) << "to be adopted";
  EXPECT_EQ(hellos[0].boot_id(), hellos[1].boot_id());
  coordinator_->set_acks(true);
  coordinator_->Send(Stop(7, v1::StopAttempt::PREDICT));
  coordinator_->Send(Stop(8, v1::StopAttempt::ABORT));
  EXPECT_EQ(coordinator_->WaitForEnded(7).reason(), v1::ATTEMPT_END_REASON_FINISHED_BY_USER);
  EXPECT_EQ(coordinator_->WaitForEnded(8).reason(), v1::ATTEMPT_END_REASON_STALE);
}

TEST_F(DaemonTest, WithoutTraindRanksGoOnAndTheirFoldsArePublished) {
  coordinator_->Start();
  StartDaemon();
  coordinator_->Send(
      Start(7, R"({"script":["started","train:30","fold","train:30","fold:epochs"]})"));
  ASSERT_TRUE(coordinator_->WaitForProgress());
  coordinator_->Stop();
  ASSERT_TRUE(Eventually([&] {
    const std::vector<PublishRequest> done = published();
    return !done.empty() && done.back().members.size() == 1 && done.back().members[0].complete;
  }));
  const PublishRequest request = published().back();
  EXPECT_EQ(request.state_dir, state_);
  EXPECT_EQ(request.job, "job-1");
  EXPECT_EQ(request.table, "cache/t.table");
  EXPECT_EQ(request.spec_folds, 2);
  EXPECT_EQ(request.members[0].attempt, 7);
  // traind comes back and is told everything.
  coordinator_->Start();
  EXPECT_EQ(coordinator_->WaitForEnded(7).reason(), v1::ATTEMPT_END_REASON_COMPLETED);
  EXPECT_TRUE(coordinator_->WaitFor([](const auto& messages) {
    return std::any_of(messages.begin(), messages.end(),
                       [](const auto& message) { return message.has_published(); });
  }));
}

TEST_F(DaemonTest, ARankKilledInAGangEndsTheOthersWithinASecond) {
  coordinator_->Start();
  StartDaemon();
  ASSERT_TRUE(coordinator_->WaitForWarmRanks(2));
  coordinator_->Send(
      Start(7, R"({"script":["started","deaf"],"script1":["train:20","signal:9"]})", -1, {0, 1}));
  ASSERT_TRUE(coordinator_->WaitForProgress());
  const absl::Time before = absl::Now();
  const v1::Ended ended = coordinator_->WaitForEnded(7);
  EXPECT_LT(absl::Now() - before, absl::Milliseconds(1'200)) << "200 ms of them its training";
  EXPECT_EQ(ended.reason(), v1::ATTEMPT_END_REASON_RANK_DIED);
  EXPECT_EQ(ended.message(), "rank 1 died: signal 9 (Killed)");
}

TEST_F(DaemonTest, AStoppedRankIsFoundHung) {
  options_.core.min_silence = absl::Milliseconds(300);
  coordinator_->Start();
  StartDaemon();
  coordinator_->Send(Start(7, R"({"script":["started","train:3","hang"]})"));
  EXPECT_EQ(coordinator_->WaitForEnded(7).reason(), v1::ATTEMPT_END_REASON_HUNG);
}

TEST_F(DaemonTest, TheDeadlineHoldsWithTraindDeadAndARankThatDoesNotListen) {
  coordinator_->Start();
  StartDaemon();
  ASSERT_TRUE(coordinator_->WaitForWarmRanks(2));
  const absl::Time deadline = absl::Now() + absl::Seconds(3);
  // Its child is the witness: nothing of the task lives at the deadline.
  const std::string file = state_ + "/child.pid";
  coordinator_->Send(Start(
      7, absl::StrCat(R"({"script":["started","fold","child:)", file, R"(","deaf"]})"), 3'000));
  ASSERT_TRUE(coordinator_->WaitForProgress());
  const std::string child = absl::StrCat("/proc/", ReadFile(file).value_or("0\n"));
  const auto alive = [&] {
    const std::string text =
        ReadFile(absl::StrCat(child.substr(0, child.size() - 1), "/stat")).value_or("");
    const size_t paren = text.rfind(')');
    return paren != std::string::npos && text[paren + 2] != 'Z' && text[paren + 2] != 'X';
  };
  EXPECT_TRUE(alive());
  coordinator_->Stop();
  ASSERT_TRUE(Eventually([&] { return !alive(); }));
  EXPECT_LE(absl::Now(), deadline);
  EXPECT_GT(absl::Now(), deadline - absl::Milliseconds(500));
  EXPECT_THAT(published(), ::testing::Not(::testing::IsEmpty())) << "before the deadline";
  coordinator_->Start();
  EXPECT_EQ(coordinator_->WaitForEnded(7).reason(), v1::ATTEMPT_END_REASON_DEADLINE);
}

TEST_F(DaemonTest, APrepareRunsInItsOwnProcessAndNeedsNoSlot) {
  coordinator_->Start();
  StartDaemon();
  coordinator_->Send(Start(1, R"({"script":["started","train"]})", -1, {0, 1}));
  ASSERT_TRUE(coordinator_->WaitForProgress());
  coordinator_->Send(Prepare(7));
  EXPECT_EQ(coordinator_->WaitForEnded(7).reason(), v1::ATTEMPT_END_REASON_COMPLETED);
  coordinator_->Send(Prepare(8, R"({"script":["table","exit:5"]})"));
  EXPECT_EQ(coordinator_->WaitForEnded(8).message(), "trainprep died: exit status 5");
  coordinator_->Send(Prepare(9, R"({"script":["fail:DATA_ERROR:train.csv: row 3, column x"]})"));
  const v1::Ended ended = coordinator_->WaitForEnded(9);
  EXPECT_EQ(ended.reason(), v1::ATTEMPT_END_REASON_DATA_ERROR);
  EXPECT_EQ(ended.message(), "train.csv: row 3, column x");
}

TEST_F(DaemonTest, AShutdownMessageSavesReportsAndEnds) {
  coordinator_->Start();
  StartDaemon();
  coordinator_->Send(Start(7, R"({"script":["started","train"]})"));
  ASSERT_TRUE(coordinator_->WaitForProgress());
  v1::CoordinatorMessage shutdown;
  shutdown.mutable_shutdown()->set_grace_ms(5'000);
  coordinator_->Send(shutdown);
  EXPECT_EQ(coordinator_->WaitForEnded(7).reason(), v1::ATTEMPT_END_REASON_SHUTDOWN);
  EXPECT_TRUE(Eventually([&] { return ended_.load(); }));
  EXPECT_EQ(CountRanks(), 0);
  const std::vector<v1::WorkerMessage> told = coordinator_->messages();
  EXPECT_TRUE(std::any_of(told.begin(), told.end(), [](const v1::WorkerMessage& message) {
    return message.report().has_checkpoint_saved();
  }));
}

TEST_F(DaemonTest, ARankThatTheKernelEndsForLackOfMemoryIsNoDeathOfItsOwn) {
  std::atomic<int64_t> kills{3}, looks{0};
  options_.out_of_memory_kills = [&kills, &looks] {
    ++looks;
    return kills.load();
  };
  coordinator_->Start();
  StartDaemon();
  coordinator_->Send(Start(7, R"({"script":["started","signal:9"]})"));
  EXPECT_EQ(coordinator_->WaitForEnded(7).reason(), v1::ATTEMPT_END_REASON_RANK_DIED);
  coordinator_->Send(Start(8, R"({"script":["started","train"]})"));
  ASSERT_TRUE(coordinator_->WaitForProgress());
  EXPECT_EQ(CountLimitedRanks(), 0);
  for (const std::filesystem::path& rank : Ranks()) {
    EXPECT_EQ(ReadFile(rank / "oom_score_adj").value_or(""), "500\n") << "traind ends after it";
  }
  ++kills;  // a process of somebody else, some seconds before
  const int64_t before = looks;
  ASSERT_TRUE(Eventually([&] { return looks >= before + 2; }));
  ASSERT_FALSE(Ranks().empty());
  for (const std::filesystem::path& rank : Ranks()) {
    kill(std::stoi(rank.filename().string()), SIGKILL);
  }
  EXPECT_EQ(coordinator_->WaitForEnded(8).reason(), v1::ATTEMPT_END_REASON_RANK_DIED);

  coordinator_->Send(Start(9, R"({"script":["started","train:50","signal:9"]})"));
  ASSERT_TRUE(coordinator_->WaitForProgress());
  ++kills;
  const v1::Ended ended = coordinator_->WaitForEnded(9);
  EXPECT_EQ(ended.reason(), v1::ATTEMPT_END_REASON_OUT_OF_MEMORY);
  EXPECT_THAT(ended.message(), HasSubstr("because memory ran out ("));
  // From now on an allocation fails before that.
  coordinator_->Send(Start(10, R"({"script":["started","train"]})"));
  ASSERT_TRUE(coordinator_->WaitForProgress());
  EXPECT_EQ(CountLimitedRanks(), 1) << "the one that trains";
}

// Else traind would start here again what has ended.
TEST_F(DaemonTest, ThatItLeavesIsToldFirstAlsoWhereTraindReadsSlowly) {
  coordinator_->Start();
  StartDaemon();
  coordinator_->Send(
      Start(7, R"({"script":["started","train:3","flood:20000","stderr:all told","train"]})"));
  ASSERT_TRUE(coordinator_->WaitForProgress());
  coordinator_->set_reads(false);
  ASSERT_TRUE(Eventually([&] { return absl::StrContains(Log(7), "all told"); }));
  const uint64_t one = 1;
  ASSERT_EQ(write(options_.stop_fd, &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
  ASSERT_TRUE(Eventually([&] { return CountRanks() == 0; }));
  coordinator_->set_reads(true);
  EXPECT_EQ(coordinator_->WaitForEnded(7).reason(), v1::ATTEMPT_END_REASON_SHUTDOWN);
  EXPECT_TRUE(coordinator_->told_of_leaving_first());
}

TEST_F(DaemonTest, AProgramThatIsMissingFailsTheTaskNotTheWorker) {
  options_.programs["trainrank"] = "/nowhere/trainrank";
  coordinator_->Start();
  StartDaemon();
  coordinator_->Send(Start(7, "{}"));
  const v1::Ended ended = coordinator_->WaitForEnded(7);
  EXPECT_EQ(ended.reason(), v1::ATTEMPT_END_REASON_RANK_DIED);
  EXPECT_THAT(ended.message(), HasSubstr("No such file"));
}

TEST_F(DaemonTest, AloneAndIdleItEndsByItselfWhenStandalone) {
  options_.standalone = true;
  options_.idle_exit = absl::Milliseconds(300);
  coordinator_->Start();
  StartDaemon();
  coordinator_->Send(Start(7, R"({"script":["started","train:60","fold:epochs"]})"));
  ASSERT_TRUE(coordinator_->WaitForProgress());
  coordinator_->Stop();
  const absl::Time before = absl::Now();
  EXPECT_TRUE(Eventually([&] { return ended_.load(); }));
  EXPECT_GT(absl::Now() - before, absl::Milliseconds(500)) << "not before its work was done";
  EXPECT_THAT(published(), SizeIs(1));
}

TEST_F(DaemonTest, ASocketPathMayBeLongerThanASocketAddress) {
  const std::string deep =
      absl::StrCat(state_, "/", std::string(100, 'x'), "/", std::string(90, 'y'));
  std::filesystem::create_directories(deep);
  const int folder = open(deep.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  coordinator_ = std::make_unique<FakeCoordinator>(
      absl::StrCat("unix:/proc/self/fd/", folder, "/worker.sock"));
  options_.coordinator = absl::StrCat("unix:", deep, "/worker.sock");
  coordinator_->Start();
  StartDaemon();
  EXPECT_TRUE(coordinator_->WaitForHellos(1));
  close(folder);
}

TEST_F(DaemonTest, ItFindsTheTraindThatTookOverAndLeavesAnEarlierOneThatComesBack) {
  FakeCoordinator first("127.0.0.1:0"), second("127.0.0.1:0");
  first.set_epoch(1);
  second.set_epoch(2);
  first.Start();
  second.Start();
  second.Stop();
  options_.coordinator = absl::StrCat(first.address(), ",", second.address());
  options_.standalone = true;  // no files travel
  options_.idle_exit = absl::Minutes(10);
  StartDaemon();
  ASSERT_TRUE(first.WaitForHellos(1));
  EXPECT_EQ(first.hellos()[0].epoch(), 0);
  first.Stop();
  second.Start();
  ASSERT_TRUE(second.WaitForHellos(1));
  EXPECT_EQ(second.hellos()[0].epoch(), 1);
  second.Stop();
  first.Start();
  // It is welcomed there by a traind of an earlier epoch, and goes on looking.
  ASSERT_TRUE(first.WaitForHellos(2));
  EXPECT_EQ(first.hellos()[1].epoch(), 2);
  second.Start();
  ASSERT_TRUE(second.WaitForHellos(2));
  second.Send(Start(7, R"({"script":["started"]})"));
  EXPECT_TRUE(second.WaitFor([](const auto& messages) { return !messages.empty(); }));
  EXPECT_TRUE(first.messages().empty());
}

TEST_F(DaemonTest, ATraindThatDoesNotWelcomeGetsNoFacts) {
  coordinator_->Start();
  coordinator_->set_welcomes(false);
  StartDaemon();
  coordinator_->Send(Start(7, R"({"script":["started","train"]})"));
  coordinator_->Send(Stop(7, v1::StopAttempt::PREDICT));
  ASSERT_TRUE(Eventually([&] { return Log(7) != "(none)"; }));
  EXPECT_THAT(coordinator_->messages(), SizeIs(0));
  coordinator_->set_welcomes(true);
  coordinator_->Stop();
  coordinator_->Start();
  EXPECT_EQ(coordinator_->WaitForEnded(7).reason(), v1::ATTEMPT_END_REASON_FINISHED_BY_USER);
}

}  // namespace
}  // namespace traind::worker
