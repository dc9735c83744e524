#include "server/retention/collector.h"

#include <absl/strings/str_cat.h>
#include <absl/synchronization/notification.h>
#include <absl/time/clock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "server/store/sqlite_store.h"
#include "tests/contract/stored_jobs.h"
#include "tests/server/loop/no_workers.h"

namespace traind {
namespace {

// Store, loop and collector on a state folder, as traind has them.
struct Daemon {
  explicit Daemon(CollectorOptions options) {
    store = SqliteStore::Open(absl::StrCat(options.state_dir, "/", kDatabaseFile)).value();
    LoopOptions loop_options;
    loop_options.state_dir = options.state_dir;
    loop = ControlLoop::Create(loop_options, store.get(), &SystemClock()).value();
    collector = std::make_unique<Collector>(std::move(options), loop.get(), store.get());
  }
  // From here on the store is written by the loop alone.
  void Start() { loop->Start(&workers); }
  ~Daemon() {
    collector->Stop();
    loop->Stop();
  }
  NoWorkers workers;
  std::unique_ptr<SqliteStore> store;
  std::unique_ptr<ControlLoop> loop;
  std::unique_ptr<Collector> collector;
};

class CollectorTest : public testing::Test {
 protected:
  void SetUp() override { MakeState(); }
  void MakeState() {
    options_.state_dir = absl::StrCat(testing::TempDir(), "/collector.XXXXXX");
    ASSERT_NE(mkdtemp(options_.state_dir.data()), nullptr);
  }
  void Write(const std::string& path, size_t bytes = 5000) {
    const std::string whole = absl::StrCat(options_.state_dir, "/", path);
    ASSERT_EQ(MakeDirs(whole.substr(0, whole.rfind('/'))), absl::OkStatus());
    ASSERT_EQ(WriteFileDurably(whole, std::string(bytes, 'x')), absl::OkStatus());
  }
  bool Exists(const std::string& path) {
    return std::filesystem::exists(absl::StrCat(options_.state_dir, "/", path));
  }
  // A Job that ended so long ago, with files and metrics.
  void AddEnded(Store& store, const std::string& id, absl::Duration ago, int metrics = 3) {
    const Job job = NewJob(id);
    ASSERT_EQ(store.Commit(Change({job})), absl::OkStatus());
    Job ended = Ended(job, JobState::kSucceeded);
    ended.finished_at = absl::Now() - ago;
    ended.table.table = "cache/k.table";
    Mutations m = Change({ended});
    for (int step = 1; step <= metrics; ++step) m.metrics.push_back(Metric(id, step));
    m.events.push_back({id, kStart, "state", "SUCCEEDED"});
    ASSERT_EQ(store.Commit(m), absl::OkStatus());
    Write(absl::StrCat(JobDir(id), "/folds.npy"));
    Write(absl::StrCat(JobDir(id), "/attempts/9/checkpoint-1.safetensors"));
  }
  std::vector<std::string> Jobs(Store& store) {
    std::vector<std::string> ids;
    const auto ended = store.ListEnded();
    EXPECT_TRUE(ended.ok()) << ended.status();
    for (const EndedJob& job : *ended) ids.push_back(job.id);
    return ids;
  }

  CollectorOptions options_;
};

TEST_F(CollectorTest, ADeletedJobIsGoneWithItsFilesAndASecondDeletionSucceeds) {
  Daemon daemon(options_);
  AddEnded(*daemon.store, "a-1", absl::Hours(1));
  AddEnded(*daemon.store, "b-1", absl::Hours(1));
  daemon.Start();
  const auto bytes = daemon.collector->Delete("a-1");
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_GE(*bytes, 10'000);
  EXPECT_FALSE(Exists(JobDir("a-1")));
  EXPECT_TRUE(absl::IsNotFound(daemon.store->GetJob("a-1").status()));
  EXPECT_EQ(daemon.collector->Delete("a-1").value(), 0);
  EXPECT_TRUE(absl::IsNotFound(daemon.collector->Delete("never-1").status()));
  EXPECT_EQ(Jobs(*daemon.store), std::vector<std::string>({"b-1"}));
  EXPECT_TRUE(Exists(JobDir("b-1") + "/folds.npy"));
}

// With a million Jobs that are over, a collection takes minutes.
TEST_F(CollectorTest, ACollectionThatIsUnderWayEndsWithStop) {
  absl::Notification began, stopping;
  int steps = 0;
  options_.limits.jobs = 0;
  options_.before_step = [&] {
    if (++steps > 1) return;
    began.Notify();
    stopping.WaitForNotification();
  };
  Daemon daemon(options_);
  for (const char* id : {"a-1", "b-1", "c-1"}) AddEnded(*daemon.store, id, absl::Hours(1));
  daemon.Start();
  daemon.collector->Start();
  began.WaitForNotification();
  std::thread stop([&] { daemon.collector->Stop(); });
  while (!daemon.collector->stopping()) absl::SleepFor(absl::Milliseconds(1));
  stopping.Notify();
  stop.join();
  EXPECT_EQ(Jobs(*daemon.store).size(), 2u);  // the first one is deleted as a whole
  EXPECT_TRUE(absl::IsCancelled(daemon.collector->Collect(/*dry_run=*/true).status()));
}

// Before each step of a deletion a process is killed; the next one finishes what it began.
TEST_F(CollectorTest, AKillBetweenAnyTwoStepsIsFinishedAtTheNextStart) {
  int finished = 0, unmarked = 0;
  for (int step = 1; finished == 0 && step < 50; ++step) {
    MakeState();
    {
      auto store = SqliteStore::Open(absl::StrCat(options_.state_dir, "/", kDatabaseFile)).value();
      // More metrics than one purge takes.
      AddEnded(*store, "gone-1", absl::Hours(2), static_cast<int>(2 * kPurgeRows + 7));
      AddEnded(*store, "kept-1", absl::Hours(1));
    }
    const pid_t child = fork();
    if (child == 0) {
      CollectorOptions options = options_;
      int left = step;
      options.before_step = [&left] {
        if (--left == 0) raise(SIGKILL);
      };
      Daemon daemon(options);
      daemon.Start();
      _exit(daemon.collector->Delete("gone-1").ok() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    finished = WIFEXITED(status) ? step : 0;
    ASSERT_TRUE(finished == 0 || WEXITSTATUS(status) == 0);

    Daemon daemon(options_);
    daemon.Start();
    const bool marked = daemon.store->FindDeleted("gone-1").ok();
    unmarked += !marked;
    const auto collected = daemon.collector->Collect(/*dry_run=*/false);
    ASSERT_TRUE(collected.ok()) << collected.status();
    EXPECT_EQ(daemon.store->GetJob("gone-1").ok(), !marked) << "step " << step;
    EXPECT_EQ(Exists(JobDir("gone-1") + "/folds.npy"), !marked) << "step " << step;
    EXPECT_TRUE(daemon.store->ListDeleting(absl::Now())->empty()) << "step " << step;
    EXPECT_EQ(daemon.store->GetMetrics("gone-1", 0, 10, "")->empty(), marked);
    EXPECT_TRUE(daemon.store->GetJob("kept-1").ok());
    EXPECT_EQ(daemon.store->GetMetrics("kept-1", 0, 10, "")->size(), 3u);
    EXPECT_TRUE(Exists(JobDir("kept-1") + "/folds.npy"));
    std::filesystem::remove_all(options_.state_dir);
  }
  EXPECT_EQ(unmarked, 1);  // only the kill before the first step leaves the Job as it was
  EXPECT_GE(finished, 6);
}

TEST_F(CollectorTest, ADryRunListsWhatARunDeletes) {
  options_.limits.jobs = 2;
  Daemon daemon(options_);
  for (int i = 1; i <= 5; ++i) AddEnded(*daemon.store, absl::StrCat("a-", i), absl::Hours(9 - i));
  daemon.Start();
  const auto listed = daemon.collector->Collect(/*dry_run=*/true).value();
  EXPECT_EQ(Jobs(*daemon.store).size(), 5u);
  EXPECT_TRUE(Exists(JobDir("a-1") + "/attempts/9/checkpoint-1.safetensors"));
  const int64_t before = BytesOnDisk(options_.state_dir + "/jobs");
  const auto deleted = daemon.collector->Collect(/*dry_run=*/false).value();
  int64_t bytes = 0;
  ASSERT_EQ(listed.size(), deleted.size());
  for (size_t i = 0; i < listed.size(); ++i) {
    EXPECT_EQ(listed[i].name, deleted[i].name);
    EXPECT_EQ(listed[i].bytes, deleted[i].bytes);
    bytes += listed[i].bytes;
  }
  EXPECT_EQ(Jobs(*daemon.store), std::vector<std::string>({"a-4", "a-5"}));
  EXPECT_EQ(before - BytesOnDisk(options_.state_dir + "/jobs"), bytes);
  // No Prediction needs the Attempts of the Jobs that stay.
  EXPECT_FALSE(Exists(JobDir("a-5") + "/attempts/9/checkpoint-1.safetensors"));
  EXPECT_TRUE(Exists(JobDir("a-5") + "/folds.npy"));
  EXPECT_TRUE(daemon.collector->Collect(/*dry_run=*/true)->empty());
}

TEST_F(CollectorTest, OldMetricsGoAndTheJobStays) {
  options_.limits.history_age = absl::Hours(3);
  Daemon daemon(options_);
  AddEnded(*daemon.store, "old-1", absl::Hours(4), static_cast<int>(kPurgeRows + 7));
  AddEnded(*daemon.store, "new-1", absl::Hours(2));
  daemon.Start();
  ASSERT_TRUE(daemon.collector->Collect(/*dry_run=*/false).ok());
  EXPECT_TRUE(daemon.store->GetMetrics("old-1", 0, 10, "")->empty());
  EXPECT_EQ(daemon.store->GetMetrics("new-1", 0, 10, "")->size(), 3u);
  EXPECT_TRUE(daemon.store->GetJob("old-1").ok());
  EXPECT_FALSE(daemon.store->ListEnded()->front().has_history);
}

TEST_F(CollectorTest, CachesThatNobodyUsedGoAndModelFilesOfKeptJobsStay) {
  options_.limits.cache_age = absl::Hours(5);
  Daemon daemon(options_);
  AddEnded(*daemon.store, "a-1", absl::Hours(1));
  const auto before = std::filesystem::file_time_type::clock::now() - std::chrono::hours(6);
  for (const char* name : {"cache/old.table", "cache/old.images", "cache/new.table", "cache/5ec.pt",
                           "cache/used.pt"}) {
    Write(name);
    if (std::string(name) == "cache/new.table") continue;
    std::filesystem::last_write_time(absl::StrCat(options_.state_dir, "/", name), before);
  }
  Job job = NewJob("uses-1");
  job.spec_json = R"({"model":{"script":{"sha256":"used"}}})";
  ASSERT_EQ(daemon.store->Commit(Change({job})), absl::OkStatus());
  ASSERT_EQ(daemon.store->Commit(Change({Ended(job, JobState::kSucceeded)})), absl::OkStatus());
  daemon.Start();
  ASSERT_TRUE(daemon.collector->Collect(/*dry_run=*/false).ok());
  EXPECT_FALSE(Exists("cache/old.table"));
  EXPECT_FALSE(Exists("cache/old.images"));
  EXPECT_FALSE(Exists("cache/5ec.pt"));
  EXPECT_TRUE(Exists("cache/new.table"));
  EXPECT_TRUE(Exists("cache/used.pt"));
}

TEST_F(CollectorTest, SentFilesGoUnlessTheyAreFreshOrAJobThatIsNotOverNamesThem) {
  options_.limits.cache_age = absl::Minutes(10);
  Daemon daemon(options_);
  for (const char* digest : {"old", "half", "named"}) {
    Write(absl::StrCat(kUploadsDir, "/", digest, "/train.csv"));
    const auto age =
        std::string(digest) == "half" ? std::chrono::minutes(30) : std::chrono::minutes(90);
    std::filesystem::last_write_time(
        absl::StrCat(options_.state_dir, "/", kUploadsDir, "/", digest),
        std::filesystem::file_time_type::clock::now() - age);
  }
  Job job = NewJob("reads-1");
  job.spec_json = R"({"data":{"train":"/state/uploads/named/train.csv"}})";
  job.table.table = "cache/k.table";  // else it might take anything
  ASSERT_EQ(daemon.store->Commit(Change({job})), absl::OkStatus());
  daemon.loop->Stop();
  LoopOptions loop_options;
  loop_options.state_dir = options_.state_dir;
  daemon.loop = ControlLoop::Create(loop_options, daemon.store.get(), &SystemClock()).value();
  daemon.collector = std::make_unique<Collector>(options_, daemon.loop.get(), daemon.store.get());
  daemon.Start();
  ASSERT_TRUE(daemon.collector->Collect(/*dry_run=*/false).ok());
  EXPECT_FALSE(Exists(UploadPath("old", "train.csv")));
  EXPECT_TRUE(Exists(UploadPath("half", "train.csv"))) << "a Submit may be on its way";
  EXPECT_TRUE(Exists(UploadPath("named", "train.csv")));
}

TEST_F(CollectorTest, ALogThatHasGrownIsRotated) {
  options_.log = "worker.log";
  options_.most_log_bytes = 100'000;
  Daemon daemon(options_);
  daemon.Start();
  Write("worker.log", 90'000);
  EXPECT_TRUE(daemon.collector->Collect(/*dry_run=*/false)->empty());
  Write("worker.log", 200'000);
  ASSERT_EQ(daemon.collector->Collect(/*dry_run=*/false)->size(), 1u);
  EXPECT_EQ(BytesOnDisk(options_.state_dir + "/worker.log"), 0);
  EXPECT_TRUE(Exists("worker.log.1"));
}

TEST_F(CollectorTest, AFolderThatReturnsAfterItsDeletionGoesAgain) {
  Daemon daemon(options_);
  AddEnded(*daemon.store, "a-1", absl::Hours(1));
  daemon.Start();
  ASSERT_TRUE(daemon.collector->Delete("a-1").ok());
  Write(JobDir("a-1") + "/attempts/3/oof.npy");
  Write(JobDir("unknown-1") + "/oof.npy");  // perhaps of a database that was put back
  ASSERT_TRUE(daemon.collector->Collect(/*dry_run=*/false).ok());
  EXPECT_FALSE(Exists(JobDir("a-1")));
  EXPECT_TRUE(Exists(JobDir("unknown-1")));
}

}  // namespace
}  // namespace traind
