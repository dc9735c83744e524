// Measures the cost of a checkpoint of a training run. Prints one JSON line with
// medians in milliseconds.
//   checkpoint_bench FOLDER [MEGABYTES [ROUNDS]]
// stall: training waits while a Learner's state is copied. total: from the start until file and
// manifest are durable. load: the file is mapped and parsed, and every byte is touched.
// load_verified: as in a resume, with the SHA-256. For comparison, the best that the machine
// can do: copying as many bytes into memory that is in use, and writing and syncing a plain
// file of as many bytes.
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "tests/worker/model/model_of.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/learner/learner.h"
#include "worker/task/background_writer.h"

namespace traind {
namespace {

using Time = std::chrono::steady_clock;

double MsSince(Time::time_point started) {
  return std::chrono::duration<double, std::milli>(Time::now() - started).count();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

[[noreturn]] void Fail(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

uint64_t Touch(absl::string_view bytes) {
  uint64_t sum = 0, word = 0;
  for (size_t i = 0; i + 8 <= bytes.size(); i += 8) {
    std::memcpy(&word, bytes.data() + i, 8);
    sum += word;
  }
  return sum;
}

// Makes a learner whose AdamW state (weights, best weights and two moments) has `bytes` bytes.
std::unique_ptr<Learner> MakeLearner(double bytes) {
  LearnerOptions options;
  const auto width = static_cast<int64_t>(std::sqrt(bytes / 16));
  MlpOf(options.model).hidden = {width};
  MlpOf(options.model).dropout = 0;
  options.shape.numeric = width;
  options.shape.outputs = 2;
  LearnerData data;
  data.rows.rows = 8;
  data.rows.numeric.assign(static_cast<size_t>(8 * width), 0.5f);
  data.classes = {0, 1, 0, 1, 0, 1, 0, 1};
  auto learner = Learner::Create(options, std::move(data));
  if (!learner.ok()) Fail(learner.status());
  const std::vector<int32_t> rows{0, 1, 2, 3, 4, 5, 6, 7};
  const absl::Status ordered = (*learner)->SetOrder(rows);
  if (!ordered.ok()) Fail(ordered);
  return *std::move(learner);
}

void OneStep(Learner& learner) {
  const absl::Status status = learner.Step({0, 8, 8, 1e-4, 1});
  if (!status.ok()) Fail(status);
}

Checkpoint Snapshot(Learner& learner) {
  auto state = learner.Save();
  if (!state.ok()) Fail(state.status());
  const auto held = std::make_shared<const Learner::State>(*std::move(state));
  Checkpoint checkpoint;
  checkpoint.job = "bench";
  checkpoint.batch = 8;
  for (const auto& [slot, values] : held->slots) checkpoint.slots[slot] = values;
  checkpoint.owner = held;
  return checkpoint;
}

double LoadUnverified(const std::string& path, uint64_t& sum) {
  const auto started = Time::now();
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info;
  if (fd < 0 || fstat(fd, &info) != 0) Fail(ErrnoStatus(errno, path));
  const auto size = static_cast<size_t>(info.st_size);
  void* base = mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
  close(fd);
  const absl::string_view bytes(static_cast<const char*>(base), size);
  const auto file = ParseSafetensors(bytes);
  if (!file.ok()) Fail(file.status());
  for (const auto& [name, tensor] : file->tensors) sum += Touch(tensor.data);
  const double ms = MsSince(started);
  munmap(base, size);
  return ms;
}

double LoadVerified(const std::string& folder, const std::string& manifest, const Learner& learner,
                    uint64_t& sum) {
  const auto started = Time::now();
  const auto read = ReadCheckpoint(folder, manifest, learner.layout(), Checkpoint());
  if (!read.ok()) Fail(read.status());
  for (const auto& [slot, values] : read->slots) {
    sum += Touch(absl::string_view(reinterpret_cast<const char*>(values.data()),
                                   values.size() * sizeof(float)));
  }
  return MsSince(started);
}

double DiskFloor(const std::string& path, const std::string& bytes) {
  const auto started = Time::now();
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) Fail(ErrnoStatus(errno, path));
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t n = write(fd, bytes.data() + at, bytes.size() - at);
    if (n <= 0) Fail(ErrnoStatus(errno, path));
    at += static_cast<size_t>(n);
  }
  if (fsync(fd) != 0) Fail(ErrnoStatus(errno, path));
  close(fd);
  const double ms = MsSince(started);
  unlink(path.c_str());
  return ms;
}

struct Figures {
  std::vector<double> stall, total, load, verified, copy, disk;
  int64_t bytes = 0;
  uint64_t sum = 0;  // keeps the compiler from dropping the reads
};

void OneRound(Learner& learner, BackgroundWriter& writer, const std::string& folder,
              const std::string& from, std::string& to, int round, Figures& figures) {
  OneStep(learner);
  const auto started = Time::now();
  auto checkpoint = std::make_shared<Checkpoint>(Snapshot(learner));
  checkpoint->step = round;
  absl::StatusOr<SavedCheckpoint> saved;
  double total_ms = 0;
  writer.TryStart([&] {
    saved = WriteCheckpoint(folder, ".", learner.layout(), *checkpoint);
    total_ms = MsSince(started);
    checkpoint.reset();
  });
  figures.stall.push_back(MsSince(started));
  writer.Wait(absl::InfiniteDuration());
  if (!saved.ok()) Fail(saved.status());
  figures.bytes = saved->bytes;
  figures.total.push_back(total_ms);
  const std::string file = absl::StrCat(folder, "/checkpoint-", round, ".safetensors");
  figures.load.push_back(LoadUnverified(file, figures.sum));
  figures.verified.push_back(LoadVerified(folder, saved->manifest, learner, figures.sum));
  const auto copying = Time::now();
  std::memcpy(to.data(), from.data(), from.size());
  figures.copy.push_back(MsSince(copying));
  figures.sum += Touch(to);
  figures.disk.push_back(DiskFloor(absl::StrCat(folder, "/floor"), from));
  const absl::Status pruned = PruneCheckpoints(folder, ".", 0);
  if (!pruned.ok()) Fail(pruned);
}

int Main(int argc, char** argv) {
  double megabytes = 100;
  int rounds = 7;
  if (argc < 2 || (argc > 2 && !absl::SimpleAtod(argv[2], &megabytes)) ||
      (argc > 3 && !absl::SimpleAtoi(argv[3], &rounds)) || rounds < 1) {
    std::fprintf(stderr, "usage: checkpoint_bench FOLDER [MEGABYTES [ROUNDS]]\n");
    return 2;
  }
  // The same setting as in trainrank.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  SetTorchThreads(1);
  const auto learner = MakeLearner(megabytes * 1e6);
  const std::string from(static_cast<size_t>(megabytes * 1e6), 'x');
  std::string to = from;
  BackgroundWriter writer;
  Figures figures;
  OneRound(*learner, writer, argv[1], from, to, 0, figures);
  figures =
      Figures();  // the first round touches the memory for the first time, so it does not count
  for (int round = 1; round <= rounds; ++round) {
    OneRound(*learner, writer, argv[1], from, to, round, figures);
  }
  std::printf(
      "{\"bytes\": %lld, \"stall_ms\": %.1f, \"total_ms\": %.1f, \"load_ms\": %.1f, "
      "\"load_verified_ms\": %.1f, \"memcpy_ms\": %.1f, \"disk_floor_ms\": %.1f, \"rounds\": %d, "
      "\"checksum\": %llu}\n",
      static_cast<long long>(figures.bytes), Median(figures.stall), Median(figures.total),
      Median(figures.load), Median(figures.verified), Median(figures.copy), Median(figures.disk),
      rounds, static_cast<unsigned long long>(figures.sum));
  return 0;
}

}  // namespace
}  // namespace traind

int main(int argc, char** argv) { return traind::Main(argc, argv); }
