#include "server/archive/archive.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/time/clock.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdio>
#include <random>

#include "common/base/clock.h"
#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "server/archive/archive_writer.h"
#include "server/archive/follower.h"
#include "server/archive/lease_file.h"
#include "server/archive/tenure.h"
#include "server/store/maintenance.h"
#include "server/store/sqlite.h"
#include "server/store/sqlite_store.h"
#include "tests/contract/stored_jobs.h"

namespace traind {
namespace {

using testing::HasSubstr;

std::string NewFolder() {
  std::string folder = absl::StrCat(testing::TempDir(), "/archive.XXXXXX");
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  return folder;
}

std::string Database(const std::string& state) { return absl::StrCat(state, "/", kDatabaseFile); }

TenureOptions Options(const std::string& artifacts, const std::string& state) {
  TenureOptions options;
  options.artifacts = artifacts;
  options.state_dir = state;
  options.fold = FoldLog;
  options.files = {"tokens"};
  options.logs = {{"log", "log.1"}};
  return options;
}

// A traind as far as its archive is concerned.
struct Traind {
  Traind(const std::string& artifacts, const std::string& state,
         int64_t most_entries = ArchiveWriter::kMostEntries, bool standby = false) {
    TenureOptions options = Options(artifacts, state);
    options.standby = standby;
    auto begun = Tenure::Begin(options, &SystemClock());
    status = begun.status();
    if (!begun.ok()) return;
    tenure = *std::move(begun);
    writer = std::make_unique<ArchiveWriter>(tenure->archive(), tenure->holder(), tenure->begun(),
                                             most_entries);
    SqliteStoreOptions with;
    with.archive = writer.get();
    with.skip_attempts = tenure->copied();
    auto opened = SqliteStore::Open(Database(state), with);
    status = opened.status();
    if (opened.ok()) store = *std::move(opened);
  }
  ~Traind() { store.reset(); }
  void WaitForBase() const {
    while (writer->copying()) absl::SleepFor(absl::Milliseconds(1));
  }
  void Stop() {
    store.reset();
    writer.reset();
    tenure->Release();
  }

  absl::Status status;
  std::unique_ptr<Tenure> tenure;
  std::unique_ptr<ArchiveWriter> writer;
  std::unique_ptr<SqliteStore> store;
};

// Returns the database that the archive tells of.
std::string Followed(const std::string& artifacts) {
  const Archive archive = Archive::Open(OpenFolderObjects(artifacts).value()).value();
  const std::string path = absl::StrCat(NewFolder(), "/followed");
  Follower follower(&archive, path);
  EXPECT_EQ(follower.CatchUp(), absl::OkStatus());
  return ReadFile(path).value();
}

void Flip(const std::string& path, size_t at) {
  std::string bytes = ReadFile(path).value();
  bytes[at] ^= 1;
  ASSERT_EQ(WriteFileDurably(path, bytes), absl::OkStatus());
}

TEST(ArchiveTest, AnEntryIsReadAsItWasWrittenAndItsNumberIsTakenOnce) {
  const std::string folder = NewFolder();
  const Archive archive = Archive::Create(OpenFolderObjects(folder).value()).value();
  ArchiveEntry entry;
  entry.number = 1;
  entry.epoch = 3;
  entry.holder = "abc";
  entry.before = std::string(64, '0');
  entry.begins = true;
  entry.change = {4, 2, std::string("\1\0\0\0page", 8)};
  EXPECT_EQ(archive.Add(entry, Encode(entry)), absl::OkStatus());
  std::string digest;
  const ArchiveEntry read = archive.Read(1, &digest).value().value();
  EXPECT_EQ(Encode(read).header, Encode(entry).header);
  EXPECT_EQ(read.change.pages, entry.change.pages);
  EXPECT_EQ(digest, Encode(entry).digest);
  EXPECT_TRUE(absl::IsAlreadyExists(archive.Add(entry, Encode(entry))));
  EXPECT_FALSE(archive.Read(2, &digest).value().has_value());
  EXPECT_EQ(archive.FindEnd().value(), (ArchivePosition{1, 3, digest}));
  EXPECT_EQ(Archive::Create(OpenFolderObjects(folder).value())->id(), archive.id());
}

TEST(ArchiveTest, AFlippedBitOfAnEntryIsFound) {
  const std::string folder = NewFolder();
  const Archive archive = Archive::Create(OpenFolderObjects(folder).value()).value();
  ArchiveEntry entry;
  entry.number = 1;
  entry.holder = "abc";
  entry.before = std::string(64, '0');
  entry.change = {4, 2, std::string("\1\0\0\0page", 8)};
  ASSERT_EQ(archive.Add(entry, Encode(entry)), absl::OkStatus());
  const std::string path = absl::StrCat(folder, "/store/log/00000000000000000001");
  const std::string sound = ReadFile(path).value();
  for (size_t at = 0; at < sound.size(); ++at) {
    Flip(path, at);
    std::string digest;
    EXPECT_TRUE(absl::IsDataLoss(archive.Read(1, &digest).status())) << at;
    ASSERT_EQ(WriteFileDurably(path, sound), absl::OkStatus());
  }
}

// The file that is made of the archive has the bytes of the database, whatever the store does in
// between: commits that nobody waits for, a log that is moved or cannot be, copies.
TEST(ArchivedStoreTest, TheArchiveHasTheBytesOfTheDatabase) {
  for (const int seed : {1, 2, 3}) {
    std::mt19937 random(static_cast<unsigned>(seed));
    const std::string artifacts = NewFolder(), state = NewFolder();
    for (int start = 0; start < 3; ++start) {
      Traind traind(artifacts, state, /*most_entries=*/12);
      ASSERT_EQ(traind.status, absl::OkStatus());
      std::unique_ptr<sqlite::Connection> reader;
      for (int i = 0; i < 40; ++i) {
        Mutations m = Change({NewJob(absl::StrCat("job-", start, "-", i), 1 + i % 5)});
        m.durable = random() % 4 != 0;
        m.last_attempt = 0;
        ASSERT_EQ(traind.store->Commit(m), absl::OkStatus());
        if (random() % 5 == 0) {
          ASSERT_EQ(traind.store->CheckpointLog(), absl::OkStatus());
        }
        if (random() % 6 == 0) {
          // A reader keeps the log from beginning anew.
          reader = sqlite::Connection::Open(Database(state), sqlite::Connection::Mode::kReadOnly)
                       .value();
          ASSERT_EQ(reader->Execute("BEGIN; SELECT COUNT(*) FROM jobs"), absl::OkStatus());
        } else if (random() % 4 == 0) {
          reader.reset();
        }
        if (m.durable && i % 10 == 0) {
          const std::string copy = absl::StrCat(NewFolder(), "/copy.db");
          ASSERT_EQ(WriteFileDurably(copy, Followed(artifacts)), absl::OkStatus());
          auto opened = SqliteStore::Open(copy);
          ASSERT_EQ(opened.status(), absl::OkStatus());
          EXPECT_EQ((*opened)->LoadSnapshot()->active.size(),
                    traind.store->LoadSnapshot()->active.size());
        }
      }
      reader.reset();
      // A base that is not done is given up at the end; the old entries would stay for it.
      traind.WaitForBase();
      ASSERT_EQ(traind.store->CheckpointLog(), absl::OkStatus());
      traind.WaitForBase();
      traind.Stop();
      EXPECT_EQ(Followed(artifacts), ReadFile(Database(state)).value()) << seed << " " << start;
    }
    const Archive archive = Archive::Open(OpenFolderObjects(artifacts).value()).value();
    EXPECT_LE(archive.Bases()->size(), 3u);
    std::string digest;
    EXPECT_FALSE(archive.Read(1, &digest).value().has_value()) << "old entries are kept";
  }
}

TEST(ArchivedStoreTest, WhoWasSucceededCannotCommitAnyMore) {
  const std::string artifacts = NewFolder(), first_state = NewFolder(), second_state = NewFolder();
  Traind first(artifacts, first_state);
  ASSERT_EQ(first.status, absl::OkStatus());
  ASSERT_EQ(first.store->Commit(Change({NewJob("a-1")})), absl::OkStatus());
  // As after a pause: the lease says that its holder ended, which is still at work.
  LeaseNote ended;
  ended.epoch = first.tenure->begun().epoch;
  ended.holder = first.tenure->holder();
  ended.released = true;
  ASSERT_EQ(WriteLease(first.tenure->archive().objects(), ended), absl::OkStatus());
  Traind second(artifacts, second_state);
  ASSERT_EQ(second.status, absl::OkStatus());
  EXPECT_TRUE(second.tenure->copied());
  EXPECT_EQ(second.tenure->begun().epoch, 2);
  EXPECT_TRUE(second.store->GetJob("a-1").ok());

  const absl::Status refused = first.store->Commit(Change({NewJob("a-2")}));
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("another traind has taken over"));
  EXPECT_EQ(first.store->Commit(Change({NewJob("a-3")})).code(), refused.code());
  ASSERT_EQ(second.store->Commit(Change({NewJob("b-1")})), absl::OkStatus());

  // The first one comes back: its database is not the one that counts.
  first.store.reset();
  first.writer.reset();
  first.tenure.reset();
  second.Stop();
  Traind again(artifacts, first_state);
  ASSERT_EQ(again.status, absl::OkStatus());
  EXPECT_TRUE(again.tenure->copied());
  EXPECT_TRUE(again.store->GetJob("a-1").ok());
  EXPECT_TRUE(again.store->GetJob("b-1").ok());
  EXPECT_FALSE(again.store->GetJob("a-2").ok());
  EXPECT_GT(again.store->LoadSnapshot()->last_attempt, kAttemptsAfterACopy);
}

TEST(TenureTest, ASecondTraindIsRefusedAtOnceAndAStandbyWaits) {
  const std::string artifacts = NewFolder();
  Traind first(artifacts, NewFolder());
  ASSERT_EQ(first.status, absl::OkStatus());
  const Traind second(artifacts, NewFolder());
  EXPECT_TRUE(absl::IsAborted(second.status)) << second.status;
  EXPECT_THAT(second.status.message(), HasSubstr("--standby"));
  TenureOptions options = Options(artifacts, NewFolder());
  options.standby = true;
  int waits = 0, looks = 0;
  options.waits = [&waits](const std::string&) { ++waits; };
  options.stop = [&looks] { return ++looks == 3; };
  EXPECT_TRUE(absl::IsCancelled(Tenure::Begin(options, &SystemClock()).status()));
  EXPECT_EQ(waits, 1);
  EXPECT_EQ(first.tenure->Check(), absl::OkStatus());
}

TEST(TenureTest, ATraindThatWasKilledGoesOnAtOnceWithItsOwnDatabase) {
  const std::string artifacts = NewFolder(), state = NewFolder();
  for (int start = 1; start <= 3; ++start) {
    Traind traind(artifacts, state);  // its lease is not released
    ASSERT_EQ(traind.status, absl::OkStatus());
    EXPECT_EQ(traind.tenure->begun().epoch, start);
    EXPECT_FALSE(traind.tenure->copied());
    ASSERT_EQ(traind.store->Commit(Change({NewJob(absl::StrCat("a-", start))})), absl::OkStatus());
  }
  const std::string copy = absl::StrCat(NewFolder(), "/copy.db");
  ASSERT_EQ(WriteFileDurably(copy, Followed(artifacts)), absl::OkStatus());
  EXPECT_EQ(SqliteStore::Open(copy).value()->LoadSnapshot()->active.size(), 3u);
}

TEST(TenureTest, AnExistingDatabaseBeginsAnArchiveAndIsNotMixedWithAnother) {
  const std::string state = NewFolder(), artifacts = NewFolder(), other = NewFolder();
  {
    auto store = SqliteStore::Open(Database(state)).value();
    ASSERT_EQ(store->Commit(Change({NewJob("a-1")})), absl::OkStatus());
  }
  {
    Traind traind(artifacts, state);
    ASSERT_EQ(traind.status, absl::OkStatus());
    traind.Stop();
  }
  EXPECT_EQ(Followed(artifacts), ReadFile(Database(state)).value());
  Traind(other, NewFolder()).Stop();
  const Traind mixed(other, state);
  EXPECT_TRUE(absl::IsFailedPrecondition(mixed.status)) << mixed.status;
  EXPECT_THAT(mixed.status.message(), HasSubstr("other --artifacts"));
  const std::string unrelated = NewFolder();
  ASSERT_TRUE(SqliteStore::Open(Database(unrelated)).ok());
  const Traind as_well(other, unrelated);
  EXPECT_TRUE(absl::IsFailedPrecondition(as_well.status)) << as_well.status;
  EXPECT_THAT(as_well.status.message(), HasSubstr("move it away"));
}

TEST(TenureTest, ADamagedDatabaseIsNotTakenIntoTheArchive) {
  const std::string state = NewFolder(), artifacts = NewFolder();
  {
    Traind traind(artifacts, state);
    ASSERT_EQ(traind.store->Commit(Change({NewJob("a-1")})), absl::OkStatus());
    traind.Stop();
  }
  const std::string archived = Followed(artifacts);
  Flip(Database(state), 4096 + 77);
  EXPECT_FALSE(Traind(artifacts, state).status.ok());
  EXPECT_EQ(Followed(artifacts), archived);
  // Without it, the one of the archive is taken.
  ASSERT_EQ(remove(Database(state).c_str()), 0);
  ASSERT_EQ(remove(SqliteStore::MarkPath(Database(state)).c_str()), 0);
  Traind traind(artifacts, state);
  ASSERT_EQ(traind.status, absl::OkStatus());
  EXPECT_TRUE(traind.store->GetJob("a-1").ok());
}

TEST(FollowerTest, AGapOrADamagedEntryIsRefusedAndADamagedCopyReplacedByTheOneBefore) {
  const std::string artifacts = NewFolder(), state = NewFolder();
  Traind traind(artifacts, state, /*most_entries=*/6);
  for (int i = 0; i < 30; ++i) {
    ASSERT_EQ(traind.store->Commit(Change({NewJob(absl::StrCat("a-", i))})), absl::OkStatus());
    ASSERT_EQ(traind.store->CheckpointLog(), absl::OkStatus());
  }
  traind.Stop();
  const std::string sound = Followed(artifacts);
  const Archive archive = Archive::Open(OpenFolderObjects(artifacts).value()).value();
  const auto bases = archive.Bases().value();
  ASSERT_EQ(bases.size(), 2u);
  Flip(archive.objects().NameOf(bases[0].key), 5000);
  EXPECT_EQ(Followed(artifacts), sound);
  const int64_t end = archive.FindEnd()->number;
  const std::string entry =
      absl::StrCat(artifacts, "/store/log/", absl::StrFormat("%020d", end - 1));
  Flip(entry, 400);
  Follower damaged(&archive, absl::StrCat(NewFolder(), "/followed"));
  EXPECT_TRUE(absl::IsDataLoss(damaged.CatchUp()));
}

// A standby that has the change must have the files.
TEST(ArchiveTest, WhatTellsOfFilesIsAddedAfterThem) {
  const std::string artifacts = NewFolder(), state = NewFolder();
  const auto tenure = Tenure::Begin(Options(artifacts, state), &SystemClock()).value();
  ArchiveWriter writer(tenure->archive(), tenure->holder(), tenure->begun());
  std::vector<std::string> told;
  int64_t end_then = 0;
  SqliteStoreOptions with;
  with.archive = &writer;
  with.before_archive = [&](const std::vector<std::string>& jobs) {
    told = jobs;
    end_then = writer.end().number;
  };
  const auto store = SqliteStore::Open(Database(state), with).value();
  ASSERT_EQ(store->Commit(Change({NewJob("a"), NewJob("b"), NewJob("c")})), absl::OkStatus());
  EXPECT_TRUE(told.empty());
  const int64_t end = writer.end().number;
  Mutations change;
  change.durable = true;
  change.events = {{"b", absl::UnixEpoch(), "prediction", "2"},
                   {"c", absl::UnixEpoch(), "checkpoint", "7"},
                   {"a", absl::UnixEpoch(), "attempt_ended", "4"},
                   {"b", absl::UnixEpoch(), "state", "RUNNING -> SUCCEEDED"}};
  ASSERT_EQ(store->Commit(change), absl::OkStatus());
  EXPECT_EQ(told, (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(end_then, end);
  EXPECT_EQ(writer.end().number, end + 1);
}

TEST(TenureTest, FilesBesidesTheDatabaseGoToTheSuccessor) {
  const std::string artifacts = NewFolder(), first = NewFolder(), second = NewFolder();
  ASSERT_EQ(WriteFileDurably(first + "/tokens", "one"), absl::OkStatus());
  {
    Traind traind(artifacts, first);
    ASSERT_EQ(WriteFileDurably(first + "/tokens", "one and two"), absl::OkStatus());
    ASSERT_EQ(WriteFileDurably(first + "/jobs/file", "of a Job"), absl::OkStatus());
    traind.Stop();
  }
  Traind traind(artifacts, second);
  EXPECT_EQ(ReadFile(second + "/tokens").value(), "one and two");
  EXPECT_EQ(ReadFile(second + "/jobs/file").value(), "of a Job");
}

TEST(TenureTest, ALogGoesOnAtTheSuccessorAndWhatOnlyOneHasIsKept) {
  const std::string artifacts = NewFolder(), first = NewFolder(), second = NewFolder();
  ASSERT_EQ(WriteFileDurably(first + "/log", "one\n"), absl::OkStatus());
  ASSERT_EQ(WriteFileDurably(second + "/log", "of another time\n"), absl::OkStatus());
  {
    Traind traind(artifacts, first);
    ASSERT_EQ(WriteFileDurably(first + "/log", "one\ntwo\n"), absl::OkStatus());
    traind.Stop();
  }
  {
    Traind traind(artifacts, second);
    EXPECT_EQ(ReadFile(second + "/log").value(), "one\ntwo\n");
    EXPECT_EQ(ReadFile(second + "/log-superseded").value(), "of another time\n");
    ASSERT_EQ(WriteFileDurably(second + "/log", "one\ntwo\nthree\n"), absl::OkStatus());
    traind.Stop();
  }
  Traind traind(artifacts, first);
  EXPECT_EQ(ReadFile(first + "/log").value(), "one\ntwo\nthree\n");
  EXPECT_FALSE(ReadFile(first + "/log-superseded").ok());
}

}  // namespace
}  // namespace traind
