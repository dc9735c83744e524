#include "server/store/sqlite_store.h"

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <thread>

#include "common/base/durable_file.h"
#include "server/store/schema.h"
#include "server/store/sqlite.h"
#include "tests/contract/store_contract.h"

namespace {
std::atomic<int> g_syncs{0};  // besides those of the high-water mark, which nobody waits for

void Count(int fd) {
  char path[4096] = {};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t length = readlink(link.c_str(), path, sizeof(path) - 1);
  const std::string name(path, length > 0 ? static_cast<size_t>(length) : 0);
  if (name.size() < 5 || name.compare(name.size() - 5, 5, "-mark") != 0) ++g_syncs;
}
}  // namespace

// In place of the C library's, which SQLite calls.
extern "C" int fdatasync(int fd) {
  Count(fd);
  return static_cast<int>(syscall(SYS_fdatasync, fd));
}
extern "C" int fsync(int fd) {
  Count(fd);
  return static_cast<int>(syscall(SYS_fsync, fd));
}

namespace traind {
namespace {

using sqlite::Connection;
using testing::HasSubstr;

std::string NewFolder() {
  std::string folder = absl::StrCat(testing::TempDir(), "/store.XXXXXX");
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  return folder;
}

class SqliteFactory final : public StoreFactory {
 public:
  Store& Open() override { return Again(); }
  Store& Again() override {
    store_.reset();
    auto store = SqliteStore::Open(path_);
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    return *store_;
  }

 private:
  const std::string path_ = NewFolder() + "/traind.db";
  std::unique_ptr<SqliteStore> store_;
};

INSTANTIATE_TEST_SUITE_P(Sqlite, StoreContractTest,
                         testing::Values([] { return std::make_unique<SqliteFactory>(); }));

int64_t Count(const std::string& path, const char* sql) {
  auto db = Connection::Open(path, Connection::Mode::kReadOnly).value();
  int64_t count = -1;
  sqlite::Query query = db->Select(sql);
  if (query.Next()) query.Read(count);
  EXPECT_EQ(query.status(), absl::OkStatus());
  return count;
}

TEST(SqliteStoreTest, TheFileIsPrivate) {
  const std::string path = NewFolder() + "/traind.db";
  auto store = SqliteStore::Open(path).value();
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST(SqliteStoreTest, ACommitIsSyncedWhereSomeoneWaitsForIt) {
  auto store = SqliteStore::Open(NewFolder() + "/traind.db").value();
  Job job = NewJob("a-1");
  for (const bool durable : {true, false, true}) {
    Mutations mutations = Change({job});
    mutations.durable = durable;
    g_syncs = 0;
    ASSERT_EQ(store->Commit(mutations), absl::OkStatus());
    EXPECT_EQ(g_syncs > 0, durable) << "commit of version " << job.version;
    job = Next(job);
  }
}

TEST(SqliteStoreTest, OnlyRowsThatChangedAreWritten) {
  const std::string path = NewFolder() + "/traind.db";
  auto store = SqliteStore::Open(path).value();
  const Job job = NewJob("a-1", 50);
  ASSERT_EQ(store->Commit(Change({job})), absl::OkStatus());
  ASSERT_EQ(store->CheckpointLog(), absl::OkStatus());
  Job next = Next(job);
  next.tasks[7].epochs_done = 1;
  ASSERT_EQ(store->Commit(Change({next})), absl::OkStatus());
  // The pages of one task, of the Job and of the totals are written; all 51 tasks would be more.
  EXPECT_LE(store->LogBytes(), 5 * 4096);
}

TEST(SqliteStoreTest, TasksThatNothingHasTouchedHaveNoRows) {
  const std::string path = NewFolder() + "/traind.db";
  auto store = SqliteStore::Open(path).value();
  const Job job = NewJob("a-1", 5);
  ASSERT_EQ(store->Commit(Change({job})), absl::OkStatus());
  EXPECT_EQ(Count(path, "SELECT COUNT(*) FROM tasks"), 0);
  ASSERT_EQ(store->Commit(Change({Started(job, 3, 7)})), absl::OkStatus());
  EXPECT_EQ(Count(path, "SELECT COUNT(*) FROM tasks"), 1);
  store = SqliteStore::Open(path).value();
  const auto read = store->GetJob("a-1");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->tasks.size(), 6u);
  EXPECT_EQ(read->tasks[0].kind, TaskKind::kPrepare);
  EXPECT_EQ(read->tasks[4].attempt, 7);
  EXPECT_EQ(read->tasks[5].fold, 4);
  EXPECT_EQ(read->tasks[5].epochs_planned, job.spec.epochs);
}

TEST(SqliteStoreTest, PlacesOfTasksThatCannotBeAreDamage) {
  for (const char* damage : {"UPDATE tasks SET position = 40", "UPDATE tasks SET position = -1",
                             "UPDATE jobs SET folds = 2000000000", "UPDATE jobs SET folds = -2"}) {
    const std::string path = NewFolder() + "/traind.db";
    auto store = SqliteStore::Open(path).value();
    const Job job = NewJob("a-1", 2);
    ASSERT_EQ(store->Commit(Change({job})), absl::OkStatus());
    ASSERT_EQ(store->Commit(Change({Started(job, 1, 7)})), absl::OkStatus());
    store.reset();
    auto db = Connection::Open(path, Connection::Mode::kReadWriteCreate).value();
    ASSERT_EQ(db->AddChecksums(), absl::OkStatus());
    ASSERT_EQ(db->Execute(damage), absl::OkStatus()) << damage;
    db.reset();
    EXPECT_EQ(SqliteStore::Open(path).value()->GetJob("a-1").status().code(),
              absl::StatusCode::kDataLoss)
        << damage;
  }
}

TEST(SqliteStoreTest, HistoryIsAppendedInOrderAcrossRestarts) {
  const std::string path = NewFolder() + "/traind.db";
  auto store = SqliteStore::Open(path).value();
  Mutations m = Change({NewJob("a-1"), NewJob("b-1")});
  m.events = {{"a-1", absl::Now(), "state", "QUEUED"},
              {"b-1", absl::Now(), "state", "QUEUED"},
              {"a-1", absl::Now(), "state", "QUEUED -> PLANNING"}};
  ASSERT_EQ(store->Commit(m), absl::OkStatus());
  store = SqliteStore::Open(path).value();
  m = {};
  m.events = {{"a-1", absl::Now(), "attempt_started", "1"}};
  ASSERT_EQ(store->Commit(m), absl::OkStatus());
  auto db = Connection::Open(path, Connection::Mode::kReadOnly).value();
  sqlite::Query query =
      db->Select("SELECT job, position, kind, detail FROM job_events ORDER BY job, position");
  std::string lines;
  while (query.Next()) {
    int64_t job = 0, position = 0;
    std::string kind, detail;
    query.Read(job, position, kind, detail);
    absl::StrAppend(&lines, job, " ", position, " ", kind, " ", detail, "\n");
  }
  EXPECT_EQ(lines,
            "1 0 state QUEUED\n1 1 state QUEUED -> PLANNING\n1 2 attempt_started 1\n"
            "2 0 state QUEUED\n");
}

TEST(SqliteStoreTest, WorkersAndTheirDevicesAreKept) {
  const std::string path = NewFolder() + "/traind.db";
  auto store = SqliteStore::Open(path).value();
  Slot slot;
  slot.device = "cuda";
  Mutations m;
  m.workers = {{"w1", "host", absl::Now(), {slot}}};
  ASSERT_EQ(store->Commit(m), absl::OkStatus());
  m.workers[0].slots.clear();
  ASSERT_EQ(store->Commit(m), absl::OkStatus());
  EXPECT_EQ(Count(path, "SELECT COUNT(*) FROM workers"), 1);
  EXPECT_EQ(Count(path, "SELECT COUNT(*) FROM devices WHERE device = 'cuda'"), 1);
}

TEST(SqliteStoreTest, ClosingEmptiesTheLog) {
  const std::string path = NewFolder() + "/traind.db";
  {
    auto store = SqliteStore::Open(path).value();
    ASSERT_EQ(store->Commit(Change({NewJob("a-1")})), absl::OkStatus());
    EXPECT_GT(store->LogBytes(), 0);
  }
  struct stat info;
  ASSERT_TRUE(stat((path + "-wal").c_str(), &info) != 0 || info.st_size == 0);
  EXPECT_EQ(SqliteStore::Open(path).value()->GetJob("a-1")->id, "a-1");
}

TEST(SqliteStoreTest, AForeignReaderHoldsTheLogUntilItEndsItsTransaction) {
  const std::string path = NewFolder() + "/traind.db";
  auto store = SqliteStore::Open(path).value();
  const auto log_file_bytes = [&] {
    struct stat info = {};
    EXPECT_EQ(stat((path + "-wal").c_str(), &info), 0);
    return info.st_size;
  };
  ASSERT_EQ(store->Commit(Change({NewJob("a-1")})), absl::OkStatus());
  const auto reader = Connection::Open(path, Connection::Mode::kReadOnly).value();
  ASSERT_EQ(reader->Execute("BEGIN; SELECT COUNT(*) FROM jobs"), absl::OkStatus());
  constexpr int64_t kLimit = 64 << 20;  // of the file, once it is written anew
  for (int i = 2; i < 80; ++i) {
    Job job = NewJob(absl::StrCat("a-", i));
    job.spec_text = std::string(1 << 20, 'x');
    Mutations mutations = Change({job});
    mutations.durable = false;
    ASSERT_EQ(store->Commit(mutations), absl::OkStatus());
    ASSERT_EQ(store->CheckpointLog(), absl::OkStatus());
  }
  EXPECT_GT(store->HeldLogBytes(), kLimit);
  EXPECT_GE(store->LogBytes(), store->HeldLogBytes());
  EXPECT_GT(log_file_bytes(), kLimit);

  ASSERT_EQ(reader->Execute("COMMIT"), absl::OkStatus());
  ASSERT_EQ(store->CheckpointLog(), absl::OkStatus());
  EXPECT_EQ(store->HeldLogBytes(), 0);
  EXPECT_EQ(store->LogBytes(), 0);
  ASSERT_EQ(store->Commit(Change({NewJob("a-80")})), absl::OkStatus());
  EXPECT_LT(store->LogBytes(), 1 << 20);
  EXPECT_LE(log_file_bytes(), kLimit);
}

TEST(SqliteStoreTest, ReadersSeeWholeCommitsWhileTheWriterWrites) {
  auto store = SqliteStore::Open(NewFolder() + "/traind.db").value();
  Job job = NewJob("a-1", 3);
  ASSERT_EQ(store->Commit(Change({job})), absl::OkStatus());
  std::atomic<bool> stop = false;
  std::vector<std::thread> readers;
  for (int i = 0; i < 6; ++i) {
    readers.emplace_back([&] {
      while (!stop) {
        const Job seen = store->GetJob("a-1").value();
        for (const Task& task : seen.tasks) EXPECT_EQ(task.epochs_done, seen.version - 1);
      }
    });
  }
  for (int i = 0; i < 300; ++i) {
    job = Next(job);
    for (Task& task : job.tasks) task.epochs_done += 1;
    Mutations m = Change({job});
    m.durable = i % 3 == 0;
    ASSERT_EQ(store->Commit(m), absl::OkStatus());
    if (i % 50 == 0) {
      ASSERT_EQ(store->CheckpointLog(), absl::OkStatus());
    }
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
}

TEST(SqliteStoreTest, TenThousandQueuedJobsLoadInTime) {
  const std::string path = NewFolder() + "/traind.db";
  auto store = SqliteStore::Open(path).value();
  for (int batch = 0; batch < 100; ++batch) {
    std::vector<Job> jobs;
    for (int i = 0; i < 100; ++i) jobs.push_back(NewJob(absl::StrCat("a-", batch * 100 + i), 5));
    ASSERT_EQ(store->Commit(Change(std::move(jobs))), absl::OkStatus());
  }
  store.reset();
  const absl::Time start = absl::Now();
  store = SqliteStore::Open(path).value();
  const auto snapshot = store->LoadSnapshot();
  const absl::Duration took = absl::Now() - start;
  ASSERT_EQ(snapshot->active.size(), 10'000u);
  EXPECT_EQ(snapshot->active[0].id, "a-0");
  EXPECT_EQ(snapshot->active[9999].id, "a-9999");
  RecordProperty("load_ms", absl::StrCat(absl::ToInt64Milliseconds(took)));
  std::printf("open and load 10,000 Jobs: %d ms\n",
              static_cast<int>(absl::ToInt64Milliseconds(took)));
  EXPECT_LT(took, absl::Seconds(10)) << "an order of magnitude above what it takes";
}

// ---- what can be wrong with the file ------------------------------------------

TEST(SqliteStoreTest, ADatabaseOfANewerTraindIsRefusedWithBothVersions) {
  const std::string path = NewFolder() + "/traind.db";
  SqliteStore::Open(path).value().reset();
  auto db = Connection::Open(path, Connection::Mode::kReadWriteCreate).value();
  ASSERT_EQ(db->Execute("PRAGMA user_version = 77"), absl::OkStatus());
  db.reset();
  const absl::Status status = SqliteStore::Open(path).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("schema version 77"));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat("versions up to ", Migrations().size())));
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
}

TEST(SqliteStoreTest, ADatabaseOfANegativeVersionIsRefused) {
  const std::string path = NewFolder() + "/traind.db";
  {
    auto db = Connection::Open(path, Connection::Mode::kReadWriteCreate).value();
    ASSERT_EQ(db->Execute("PRAGMA user_version = -2147483635"), absl::OkStatus());
  }
  const absl::Status status = SqliteStore::Open(path).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("schema version -2147483635"));
}

TEST(SqliteStoreTest, WhatIsNoDatabaseIsRefused) {
  const std::string path = NewFolder() + "/traind.db";
  ASSERT_EQ(WriteFileDurably(path, std::string(10'000, 'x')), absl::OkStatus());
  const absl::Status status = SqliteStore::Open(path).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("restore a copy"));
  // The file is left as it is.
  EXPECT_EQ(ReadFile(path).value(), std::string(10'000, 'x'));
}

// Makes a database of so many Jobs and damages every third page from `page` on.
void MakeDamaged(const std::string& path, int many, size_t page) {
  {
    auto store = SqliteStore::Open(path).value();
    std::vector<Job> jobs;
    for (int i = 0; i < many; ++i) jobs.push_back(NewJob(absl::StrCat("a-", i)));
    ASSERT_EQ(store->Commit(Change(std::move(jobs))), absl::OkStatus());
  }
  std::string bytes = ReadFile(path).value();
  for (; page * 4096 + 200 < bytes.size(); page += 3) {
    bytes.replace(page * 4096, 200, std::string(200, '\xff'));
  }
  ASSERT_EQ(WriteFileDurably(path, bytes), absl::OkStatus());
}

TEST(SqliteStoreTest, ALargeDatabaseIsCheckedInTheBackground) {
  const std::string path = NewFolder() + "/traind.db";
  MakeDamaged(path, 2000, 60);
  SqliteStoreOptions options;
  options.most_bytes_checked_at_start = 4096;
  auto store = SqliteStore::Open(path, options);
  ASSERT_TRUE(store.ok()) << store.status();
  Mutations m;
  m.last_attempt = 1;
  absl::Status status;
  const absl::Time give_up = absl::Now() + absl::Seconds(30);
  while (status.ok() && absl::Now() < give_up) {
    ++m.last_attempt;
    status = (*store)->Commit(m);
  }
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
}

TEST(SqliteStoreTest, NoReaderDelaysASubmit) {
  SqliteStoreOptions options;
  options.readers = 0;  // every read would wait for ever
  auto store = SqliteStore::Open(NewFolder() + "/traind.db", options).value();
  Job job = NewJob("a-1");
  job.request_id = "r";
  ASSERT_EQ(store->Commit(Change({job})), absl::OkStatus());
  const auto known = store->FindSubmits({{{"local", "r"}, "a-2"}, {{"local", ""}, "a-1"}});
  ASSERT_EQ(known.size(), 2u);
  ASSERT_TRUE(known[0].ok()) << known[0].status();
  ASSERT_TRUE(known[0]->job.has_value());
  EXPECT_EQ(known[0]->job->id, "a-1");
  EXPECT_FALSE(known[0]->id_is_taken);
  EXPECT_TRUE(known[1]->id_is_taken);
  EXPECT_EQ(store->Commit(Change({NewJob("a-2")})), absl::OkStatus());
}

// The work of a page has a limit, also where conditions allow many Jobs each and none together.
TEST(SqliteStoreTest, AListOfRareJobsComesInPages) {
  auto store = SqliteStore::Open(NewFolder() + "/traind.db").value();
  std::vector<Job> jobs;
  for (int i = 0; i < 8000; ++i) {
    jobs.push_back(NewJob(absl::StrCat("a-", i), 0));
    jobs.back().spec.labels[i % 2 == 0 ? "even" : "odd"] = "yes";
  }
  jobs[10].spec.labels["odd"] = "yes";
  ASSERT_EQ(store->Commit(Change(std::move(jobs))), absl::OkStatus());
  JobFilter filter;
  filter.labels = {{"even", "yes"}, {"odd", "yes"}};
  std::vector<std::string> ids;
  int pages = 0;
  do {
    const auto page = store->ListJobs(filter);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const auto& job : page->jobs) ids.push_back(job->id);
    filter.page_token = page->next_page_token;
  } while (!filter.page_token.empty() && ++pages < 100);
  EXPECT_EQ(ids, std::vector<std::string>{"a-10"});
  EXPECT_GT(pages, 0);
}

TEST(SqliteStoreTest, ADamagedDatabaseIsRefused) {
  const std::string path = NewFolder() + "/traind.db";
  MakeDamaged(path, 200, 4);
  const absl::Status status = SqliteStore::Open(path).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
}

TEST(SqliteStoreTest, AFileThatIsNotWritableIsRefused) {
  const std::string folder = NewFolder();
  const std::string path = folder + "/traind.db";
  SqliteStore::Open(path).value().reset();
  ASSERT_EQ(chmod(path.c_str(), 0400), 0);
  // Root may write everything, so the test becomes another user.
  const bool root = geteuid() == 0;
  if (root) {
    ASSERT_EQ(chmod(folder.c_str(), 0777), 0);
    ASSERT_EQ(chown(path.c_str(), 65534, 65534), 0);
    ASSERT_EQ(seteuid(65534), 0);
  }
  const absl::Status status = SqliteStore::Open(path).status();
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  if (access(folder.c_str(), X_OK) != 0) GTEST_SKIP() << "the test's folder is private";
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
}

// ---- what is missing from the file ---------------------------------------------

// Commits Jobs from `first` on, each durably.
void CommitJobs(SqliteStore& store, int first, int many) {
  for (int i = first; i < first + many; ++i) {
    Mutations m = Change({NewJob(absl::StrCat("a-", i))});
    m.last_attempt = i;
    m.durable = true;
    ASSERT_EQ(store.Commit(m), absl::OkStatus());
  }
}

void Copy(const std::string& from, const std::string& to) {
  ASSERT_EQ(WriteFileDurably(to, ReadFile(from).value()), absl::OkStatus());
}

// Copies a database as it is on the disk while a process uses it.
void CopyDatabase(const std::string& from, const std::string& to,
                  const std::string& without = "nothing") {
  for (const std::string suffix : {"", "-wal", "-mark"}) {
    if (suffix != without) Copy(from + suffix, to + suffix);
  }
}

TEST(SqliteStoreTest, ALostLogIsNoticedAndMayBeGivenUp) {
  const std::string path = NewFolder() + "/traind.db", after = NewFolder() + "/traind.db";
  auto store = SqliteStore::Open(path).value();
  CommitJobs(*store, 1, 3);
  ASSERT_EQ(store->CheckpointLog(), absl::OkStatus());
  CommitJobs(*store, 4, 2);
  CopyDatabase(path, after, "-wal");
  const absl::Status refused = SqliteStore::Open(after).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("ends with change 3"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("change 5 was acknowledged"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("--accept-loss"));
  SqliteStoreOptions options;
  options.accept_loss = true;
  {
    auto accepted = SqliteStore::Open(after, options);
    ASSERT_TRUE(accepted.ok()) << accepted.status();
    // The numbers of Attempts that were lost are not given again.
    EXPECT_EQ((*accepted)->LoadSnapshot()->last_attempt, 5);
    EXPECT_EQ((*accepted)->LoadSnapshot()->active.size(), 3u);
  }
  EXPECT_EQ(SqliteStore::Open(after).status(), absl::OkStatus()) << "it is asked once";
}

TEST(SqliteStoreTest, AFlippedBitInTheLogIsNoticed) {
  const std::string path = NewFolder() + "/traind.db", after = NewFolder() + "/traind.db";
  auto store = SqliteStore::Open(path).value();
  CommitJobs(*store, 1, 5);
  CopyDatabase(path, after);
  ASSERT_EQ(SqliteStore::Open(after).status(), absl::OkStatus());
  CopyDatabase(path, after);
  std::string log = ReadFile(after + "-wal").value();
  log[log.size() / 2] ^= 4;
  ASSERT_EQ(WriteFileDurably(after + "-wal", log), absl::OkStatus());
  EXPECT_TRUE(absl::IsFailedPrecondition(SqliteStore::Open(after).status()));
}

TEST(SqliteStoreTest, AnOldCopyIsNoticed) {
  const std::string folder = NewFolder(), path = folder + "/traind.db";
  const std::string copy = NewFolder() + "/traind.db";
  {
    auto store = SqliteStore::Open(path).value();
    CommitJobs(*store, 1, 3);
    CopyDatabase(path, copy, "-mark");
    CommitJobs(*store, 4, 1);
  }
  CopyDatabase(copy, path, "-mark");
  EXPECT_TRUE(absl::IsFailedPrecondition(SqliteStore::Open(path).status()));
}

TEST(SqliteStoreTest, ACopyThatWentAnotherWayIsNoticed) {
  const std::string path = NewFolder() + "/traind.db", copy = NewFolder() + "/traind.db";
  {
    auto store = SqliteStore::Open(path).value();
    CommitJobs(*store, 1, 3);
    CopyDatabase(path, copy);
    CommitJobs(*store, 4, 1);
  }
  {
    auto store = SqliteStore::Open(copy).value();
    CommitJobs(*store, 7, 1);
  }
  Copy(copy, path);
  const absl::Status refused = SqliteStore::Open(path).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("was another one"));
}

TEST(SqliteStoreTest, ATornMarkLeavesTheOneBeforeIt) {
  const std::string path = NewFolder() + "/traind.db";
  {
    auto store = SqliteStore::Open(path).value();
    CommitJobs(*store, 1, 3);
  }
  std::string mark = ReadFile(path + "-mark").value();
  ASSERT_EQ(mark.size(), 1024u);
  mark.replace(512 + 20, 40, std::string(40, 'x'));  // the third stands in the second slot
  ASSERT_EQ(WriteFileDurably(path + "-mark", mark), absl::OkStatus());
  EXPECT_EQ(HighWaterFile::Read(path + "-mark").value()->revision, 2);
  EXPECT_EQ(SqliteStore::Open(path).status(), absl::OkStatus());
  EXPECT_EQ(HighWaterFile::Read(path + "-mark").value()->revision, 3);
  ASSERT_EQ(WriteFileDurably(path + "-mark", std::string(1024, 'x')), absl::OkStatus());
  EXPECT_TRUE(absl::IsDataLoss(SqliteStore::Open(path).status()));
}

// Every bit of a page counts, also those of texts, which SQLite does not check.
TEST(SqliteStoreTest, AnyFlippedBitIsNoticed) {
  const std::string path = NewFolder() + "/traind.db", after = NewFolder() + "/traind.db";
  {
    auto store = SqliteStore::Open(path).value();
    CommitJobs(*store, 1, 5);
  }
  CopyDatabase(path, after, "-wal");
  ASSERT_EQ(SqliteStore::Open(after).status(), absl::OkStatus());
  const std::string sound = ReadFile(path).value();
  unsigned seed = 7;
  for (int i = 0; i < 200; ++i) {
    std::string bytes = sound;
    seed = seed * 1103515245 + 12345;
    const size_t at = seed / 8 % bytes.size();
    bytes[at] ^= static_cast<char>(1 << seed % 8);
    ASSERT_EQ(WriteFileDurably(after, bytes), absl::OkStatus());
    EXPECT_FALSE(SqliteStore::Open(after).ok()) << "bit " << seed % 8 << " of byte " << at;
  }
}

TEST(SqliteStoreTest, ADatabaseWithoutChecksumsGetsThem) {
  const std::string path = NewFolder() + "/traind.db";
  {
    auto db = Connection::Open(path, Connection::Mode::kReadWriteCreate).value();
    ASSERT_EQ(db->Execute("PRAGMA journal_mode = WAL"), absl::OkStatus());
    ASSERT_EQ(Migrate(*db, Migrations().first(10)), absl::OkStatus());
    EXPECT_FALSE(db->HasChecksums());
  }
  {
    auto store = SqliteStore::Open(path).value();
    CommitJobs(*store, 1, 3);
  }
  EXPECT_EQ(ReadFile(path).value()[20], 8);
  EXPECT_EQ(SqliteStore::Open(path).value()->LoadSnapshot()->active.size(), 3u);
}

TEST(SqliteStoreTest, AChangedEventIsNoticed) {
  const std::string path = NewFolder() + "/traind.db";
  auto store = SqliteStore::Open(path).value();
  Mutations m = Change({NewJob("a-1")});
  for (int i = 0; i < 5; ++i) m.events.push_back({"a-1", absl::Now(), "state", "QUEUED"});
  ASSERT_EQ(store->Commit(m), absl::OkStatus());
  EXPECT_EQ(store->GetEvents("a-1", 0, 100)->size(), 5u);
  auto db = Connection::Open(path, Connection::Mode::kReadWriteCreate).value();
  for (const char* const change : {"UPDATE job_events SET detail = 'RUNNING' WHERE position = 3",
                                   "DELETE FROM job_events WHERE position = 3"}) {
    ASSERT_EQ(db->Execute(change), absl::OkStatus());
    EXPECT_EQ(store->GetEvents("a-1", 0, 2)->size(), 2u) << "those before it are sound";
    for (const int after : {0, 2, 3}) {
      EXPECT_TRUE(absl::IsDataLoss(store->GetEvents("a-1", after, 100).status())) << after;
    }
  }
}

// ---- no room ------------------------------------------------------------------

// Commits Jobs until one does not fit; returns their number.
int Fill(SqliteStore& store, absl::Status* status) {
  for (int i = 0;; ++i) {
    Job job = NewJob(absl::StrCat("fill-", i));
    job.spec_text = std::string(3000, 'x');
    *status = store.Commit(Change({job}));
    if (!status->ok()) return i;
  }
}

TEST(SqliteStoreTest, AFullDatabaseTakesNothingAndHeals) {
  const std::string path = NewFolder() + "/traind.db";
  SqliteStoreOptions options;
  options.max_bytes = 1 << 20;
  auto store = SqliteStore::Open(path, options).value();
  absl::Status status;
  const int written = Fill(*store, &status);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_GT(written, 10);
  EXPECT_EQ(store->LoadSnapshot()->active.size(), static_cast<size_t>(written));
  EXPECT_TRUE(absl::IsNotFound(store->GetJob(absl::StrCat("fill-", written)).status()));
  store.reset();
  store = SqliteStore::Open(path).value();
  EXPECT_EQ(store->Commit(Change({NewJob(absl::StrCat("fill-", written))})), absl::OkStatus());
}

// Uses a full file system of its own, if the system allows to make one.
TEST(SqliteStoreTest, AFullDiskTakesNothingAndHealsInPlace) {
  const std::string folder = NewFolder();
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=2m") != 0) {
      _exit(77);
    }
    int failed = 0;
    const auto check = [&](bool ok, const char* what) {
      if (!ok) std::fprintf(stderr, "not so: %s\n", what), ++failed;
    };
    {
      auto store = SqliteStore::Open(folder + "/traind.db").value();
      const std::string ballast = folder + "/ballast";
      const int fd = open(ballast.c_str(), O_CREAT | O_WRONLY, 0600);
      check(fd >= 0 && posix_fallocate(fd, 0, 1 << 20) == 0, "ballast is written");
      close(fd);
      absl::Status status;
      const int written = Fill(*store, &status);
      std::fprintf(stderr, "%d fitted, then: %s\n", written, status.ToString().c_str());
      check(absl::IsResourceExhausted(status), "a full disk is ResourceExhausted");
      check(written > 10, "some fitted");
      check(store->LoadSnapshot()->active.size() == static_cast<size_t>(written),
            "the refused one is not there");
      unlink(ballast.c_str());
      const Job job = NewJob(absl::StrCat("fill-", written));
      check(store->Commit(Change({job})).ok(), "it heals when there is room");
      check(store->GetJob(job.id).ok(), "and is there");
    }
    _exit(failed ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no file system may be mounted here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// ---- migrations ---------------------------------------------------------------

TEST(SchemaTest, MigrationsGoForwardFromEachOlderVersion) {
  const char* const kSteps[] = {"CREATE TABLE a(x); INSERT INTO a VALUES(1)",
                                "ALTER TABLE a ADD COLUMN y DEFAULT 2", "CREATE TABLE b(z)"};
  for (int from = 0; from <= 3; ++from) {
    const std::string path = NewFolder() + "/m.db";
    auto db = Connection::Open(path, Connection::Mode::kReadWriteCreate).value();
    ASSERT_EQ(Migrate(*db, absl::MakeSpan(kSteps, from)), absl::OkStatus());
    ASSERT_EQ(Migrate(*db, kSteps), absl::OkStatus());
    EXPECT_EQ(Count(path, "SELECT y FROM a"), 2);
    EXPECT_EQ(Count(path, "SELECT COUNT(*) FROM b"), 0);
    EXPECT_EQ(Count(path, "PRAGMA user_version"), 3);
  }
}

TEST(SchemaTest, AFailedMigrationLeavesTheVersionBefore) {
  const char* const kSteps[] = {"CREATE TABLE a(x)", "CREATE TABLE b(y); CREATE TABLE a(x)"};
  const std::string path = NewFolder() + "/m.db";
  auto db = Connection::Open(path, Connection::Mode::kReadWriteCreate).value();
  const absl::Status status = Migrate(*db, kSteps);
  EXPECT_THAT(std::string(status.message()), HasSubstr("migration to schema version 2"));
  EXPECT_EQ(Count(path, "PRAGMA user_version"), 1);
  EXPECT_EQ(Count(path, "SELECT COUNT(*) FROM sqlite_schema WHERE name = 'b'"), 0);
}

}  // namespace
}  // namespace traind
