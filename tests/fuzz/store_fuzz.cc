// Opens a damaged database: it is refused, or everything in it can be asked for. The input is a
// byte that says whether pages get new checksums, and changes of four bytes each: where, and by
// what.
#include <sqlite3.h>

#include <cstring>
#include <fstream>

#include "common/base/durable_file.h"
#include "server/store/checksum_vfs.h"
#include "server/store/sqlite_store.h"
#include "tests/contract/stored_jobs.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/scratch.h"

namespace {

using namespace traind;

constexpr size_t kPageBytes = 4096;
constexpr size_t kMostChanges = 64;

// A database with a Job that has every field, and one that trains.
std::string SoundDatabase(const Scratch& scratch) {
  const std::string path = scratch.path() + "/sound.db";
  auto store = SqliteStore::Open(path);
  Check(store.ok(), "a new database opens");
  absl::Status taken = (*store)->Commit(Change({FullJob(), NewJob("runs-1")}));
  Check(taken.ok(), taken.ToString().c_str());
  Mutations changes = Change({Started(NewJob("runs-1"), 0, 3)});
  changes.metrics = {Metric("runs-1", 1), Metric("runs-1", 2)};
  changes.checkpoints = {{"runs-1", CheckpointOf(3, 0, 10)}};
  changes.events = {{"runs-1", kStart, "state", "QUEUED"}, {"runs-1", kStart, "state", "RUNNING"}};
  changes.workers = {{"w1", "host", kStart, {Slot{}}}};
  taken = (*store)->Commit(changes);
  Check(taken.ok(), taken.ToString().c_str());
  store->reset();
  return ReadFile(path).value();
}

void ReadEverything(Store& store) {
  const auto snapshot = store.LoadSnapshot();
  JobFilter filter;
  const auto page = store.ListJobs(filter);
  for (const char* id : {"runs-1", "full-1"}) {
    const auto job = store.GetJob(id);
    if (job.ok()) (void)Describe(*job);
    (void)store.GetMetrics(id, 0, 100, "");
    (void)store.GetEvents(id, 0, 100);
    (void)store.ListCheckpoints(id);
    (void)store.FindSubmits({{{"ann", "r1"}, id}});
    (void)store.FindDeleted(id);
  }
  (void)store.FindByName("full");
  (void)store.UsageSince(absl::InfinitePast());
  (void)store.HasOwner("ann");
  (void)store.FindTrained("key", "digest");
  (void)store.RecordedSpeed("key", "digest", 1000);
  (void)store.ListEnded();
  (void)store.ListDeleting(absl::Now());
  (void)store.IsInASpec("sha256:aa");
  (void)store.Commit(Change({NewJob("new-1")}));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto& scratch = *new Scratch;
  static const std::string& sound = *new std::string(SoundDatabase(scratch));
  if (size < 1 + 4) return 0;
  const bool checksums = data[0] % 2 == 1;
  std::string bytes = sound;
  for (size_t i = 1; i + 4 <= size && i / 4 < kMostChanges; i += 4) {
    uint32_t change = 0;
    std::memcpy(&change, data + i, sizeof change);
    bytes[(change >> 8) % bytes.size()] ^= static_cast<char>(change & 0xff);
  }
  const bool damaged = bytes != sound;
  for (size_t page = 0; checksums && page < bytes.size() / kPageBytes; ++page) {
    sqlite::AddChecksum(bytes.data() + page * kPageBytes, kPageBytes, static_cast<int64_t>(page));
  }
  const std::string path = scratch.Write("damaged.db", bytes);
  for (const char* beside : {"-wal", "-shm", "-mark"}) unlink((path + beside).c_str());
  const auto store = SqliteStore::Open(path);
  Check(checksums || !damaged || !store.ok(), "damage is noticed by the checksums");
  Check(damaged || store.ok(), "a sound database opens");
  if (store.ok()) ReadEverything(**store);
  return 0;
}
