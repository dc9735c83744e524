#include "worker/device/shared_memory_group.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>

#include "common/base/cores.h"
#include "common/base/durable_file.h"
#include "common/base/status_macros.h"

namespace traind {
namespace {

// Small enough that a chunk and its sum stay in a second-level cache, large enough that the
// cost of announcing it is negligible.
constexpr size_t kChunkBytes = 128 << 10;
constexpr uint32_t kChunks =
    16;  // in a ring: how far a rank may be ahead; a power of two, because counters wrap around
constexpr size_t kPartBytes = 1 << 20;  // used with many ranks
constexpr size_t kPage = 4096;
constexpr size_t kLine = 128;  // two cache lines, because neighbours are fetched in pairs
constexpr int kMostDirect =
    3;  // ranks; with more, reading every ring in full costs more than meeting twice
// Spinning lasts about 100 us: a peer that computes the same is rarely later. If it is later,
// because the machine has other work, the next spin is half as long.
constexpr int kSpins = 4000, kLeastSpins = 32;
constexpr absl::Duration kLookAround =
    absl::Milliseconds(20);  // interval of checks whether peers live

void Relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Identifies this kernel's PID namespace among all others.
std::string Host() {
  char space[64] = "";
  const ssize_t size = readlink("/proc/self/ns/pid", space, sizeof space - 1);
  auto boot = ReadFile("/proc/sys/kernel/random/boot_id");
  if (size <= 0 || !boot.ok()) return "";
  while (!boot->empty() && boot->back() == '\n') boot->pop_back();
  return absl::StrCat(*boot, "/", absl::string_view(space, static_cast<size_t>(size)));
}

}  // namespace

struct SharedMemoryGroup::Header {
  uint64_t nonce;  // identifies the segment; also part of its address
  uint64_t world_size;
  std::atomic<uint32_t> failed;  // set by the first rank that fails, so that others need not wait
};

// A number that only grows, and wraps around. Others may wait for it: value is a futex.
struct SharedMemoryGroup::Counter {
  std::atomic<uint32_t> value;
  std::atomic<uint32_t> waiting;  // number of threads that sleep until it changes

  bool Has(uint32_t count) const {
    return static_cast<int32_t>(value.load(std::memory_order_acquire) - count) >= 0;
  }
  void Set(uint32_t count) {
    value.store(count);
    // Sequentially consistent, like the waiter's part: at least one of the two sees the other.
    if (waiting.load() > 0) Wake();
  }
  void Wake() { syscall(SYS_futex, &value, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }
};

// The data of one rank in the segment.
struct SharedMemoryGroup::Seat {
  Counter put;    // chunks written and meetings joined
  Counter taken;  // chunks read and meetings left
  std::atomic<uint32_t> left;
  std::atomic<int32_t> pid;
};

SharedMemoryGroup::SharedMemoryGroup(int rank, int world_size, absl::Duration timeout)
    : rank_(rank),
      world_size_(world_size),
      timeout_(timeout),
      // If ranks outnumber cores, spinning would keep off the core the peer that is waited for.
      spins_(UsableCores() >= world_size ? kSpins : 0) {}

absl::Status SharedMemoryGroup::Map(int fd) {
  fd_ = fd;
  const size_t ranks = static_cast<size_t>(world_size_);
  seats_bytes_ = (ranks * kLine + kPage - 1) / kPage * kPage;
  bytes_ = kPage + seats_bytes_ + ranks * kChunks * kChunkBytes;
  if (world_size_ > kMostDirect) bytes_ += (ranks + 1) * 2 * kPartBytes;
  if (rank_ == 0 && ftruncate(fd, static_cast<off_t>(bytes_)) != 0) {
    return ErrnoStatus(errno, "shared memory of the gang");
  }
  struct stat info;
  if (fstat(fd, &info) != 0 || static_cast<size_t>(info.st_size) != bytes_) {
    return absl::FailedPreconditionError("the segment has another size");
  }
  void* base = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) return ErrnoStatus(errno, "map the gang's shared memory");
  base_ = static_cast<char*>(base);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<SharedMemoryGroup>> SharedMemoryGroup::Create(
    int world_size, absl::Duration timeout) {
  std::unique_ptr<SharedMemoryGroup> group(new SharedMemoryGroup(0, world_size, timeout));
  const int fd = memfd_create("traind-gang", MFD_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "shared memory of the gang");
  RETURN_IF_ERROR(group->Map(fd));
  uint64_t nonce = 0;
  if (getrandom(&nonce, sizeof nonce, 0) != sizeof nonce) return ErrnoStatus(errno, "getrandom");
  Header& header = *reinterpret_cast<Header*>(group->base_);
  header.nonce = nonce;
  header.world_size = static_cast<uint64_t>(world_size);
  group->seat(0).pid = getpid();
  group->address_ = absl::StrCat(Host(), " ", getpid(), " ", fd, " ", nonce);
  return group;
}

absl::StatusOr<std::unique_ptr<SharedMemoryGroup>> SharedMemoryGroup::Open(
    const std::string& address, int rank, int world_size, absl::Duration timeout) {
  const std::vector<std::string> parts = absl::StrSplit(address, ' ');
  int pid = 0, number = 0;
  uint64_t nonce = 0;
  if (parts.size() != 4 || !absl::SimpleAtoi(parts[1], &pid) ||
      !absl::SimpleAtoi(parts[2], &number) || !absl::SimpleAtoi(parts[3], &nonce)) {
    return absl::FailedPreconditionError(absl::StrCat("not the address of a segment: ", address));
  }
  // On another host that process number belongs to another process.
  if (parts[0].empty() || parts[0] != Host()) {
    return absl::FailedPreconditionError("rank 0 is on another host");
  }
  const std::string path = absl::StrCat("/proc/", pid, "/fd/", number);
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return absl::FailedPreconditionError(ErrnoStatus(errno, path).message());
  std::unique_ptr<SharedMemoryGroup> group(new SharedMemoryGroup(rank, world_size, timeout));
  RETURN_IF_ERROR(group->Map(fd));
  const Header& header = *reinterpret_cast<Header*>(group->base_);
  if (header.nonce != nonce || header.world_size != static_cast<uint64_t>(world_size)) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is another gang's segment"));
  }
  group->seat(rank).pid = getpid();
  return group;
}

SharedMemoryGroup::~SharedMemoryGroup() {
  if (base_ != nullptr) {
    Seat& own = seat(rank_);
    own.left = 1;
    own.put.Wake();
    own.taken.Wake();
    munmap(base_, bytes_);
  }
  if (fd_ >= 0) close(fd_);
  for (const int fd : peer_fds_) {
    if (fd >= 0) close(fd);
  }
}

absl::Status SharedMemoryGroup::Seal() {
  close(fd_);
  fd_ = -1;
  peer_fds_.assign(static_cast<size_t>(world_size_), -1);
  for (int peer = 0; peer < world_size_; ++peer) {
    const pid_t pid = seat(peer).pid;
    if (pid == getpid()) continue;
    const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (fd < 0 && errno == ESRCH) return Fail(absl::StrCat("rank ", peer, " has ended"));
    peer_fds_[static_cast<size_t>(peer)] =
        fd;  // -1 on an old kernel; then only the timeout applies
  }
  return absl::OkStatus();
}

SharedMemoryGroup::Seat& SharedMemoryGroup::seat(int rank) const {
  return *reinterpret_cast<Seat*>(base_ + kPage + static_cast<size_t>(rank) * kLine);
}

char* SharedMemoryGroup::chunk(int rank, uint32_t index) const {
  const size_t place = static_cast<size_t>(rank) * kChunks + index % kChunks;
  return base_ + kPage + seats_bytes_ + place * kChunkBytes;
}

char* SharedMemoryGroup::part(int rank) const {
  const size_t place = 2 * static_cast<size_t>(rank) + turn_ % 2;
  return chunk(world_size_, 0) + place * kPartBytes;
}

void SharedMemoryGroup::Announce() { seat(rank_).put.Set(++put_); }

void SharedMemoryGroup::MarkTaken() { seat(rank_).taken.Set(++taken_); }

absl::Status SharedMemoryGroup::Meet() {
  Announce();
  return WaitForAll(&Seat::put, put_);
}

absl::Status SharedMemoryGroup::Barrier() {
  RETURN_IF_ERROR(Meet());
  MarkTaken();
  return absl::OkStatus();
}

bool SharedMemoryGroup::AllHave(Counter Seat::*which, uint32_t count) const {
  for (int peer = 0; peer < world_size_; ++peer) {
    if (!(seat(peer).*which).Has(count)) return false;
  }
  return true;
}

absl::Status SharedMemoryGroup::WaitForAll(Counter Seat::*which, uint32_t count) {
  for (int peer = 0; peer < world_size_; ++peer) {
    if (peer != rank_) RETURN_IF_ERROR(WaitFor(peer, seat(peer).*which, count));
  }
  return absl::OkStatus();
}

absl::Status SharedMemoryGroup::WaitFor(int peer, Counter& counter, uint32_t count) {
  for (int i = 0; i <= spins_; ++i) {
    if (counter.Has(count)) {
      if (i > 0) spins_ = std::min(kSpins, spins_ * 2);
      return absl::OkStatus();
    }
    Relax();
  }
  spins_ = spins_ == 0 ? 0 : std::max(kLeastSpins, spins_ / 2);
  absl::Duration waited;
  const timespec slice = absl::ToTimespec(kLookAround);
  timespec started, now;
  clock_gettime(CLOCK_MONOTONIC, &started);
  while (true) {
    counter.waiting.fetch_add(1);
    const uint32_t seen = counter.value.load();
    const bool here = static_cast<int32_t>(seen - count) >= 0;
    if (!here) syscall(SYS_futex, &counter.value, FUTEX_WAIT, seen, &slice, nullptr, 0);
    counter.waiting.fetch_sub(1);
    if (counter.Has(count)) return absl::OkStatus();
    clock_gettime(CLOCK_MONOTONIC, &now);
    waited = absl::DurationFromTimespec(now) - absl::DurationFromTimespec(started);
    RETURN_IF_ERROR(CheckPeer(peer, waited));
  }
}

absl::Status SharedMemoryGroup::CheckPeer(int peer, absl::Duration waited) const {
  if (seat(peer).left != 0) return Fail(absl::StrCat("rank ", peer, " has left"));
  if (reinterpret_cast<Header*>(base_)->failed != 0) return Fail("another rank gave up");
  if (waited >= timeout_) {
    return Fail(
        absl::StrCat("rank ", peer, " did not come within ", absl::FormatDuration(timeout_)));
  }
  for (int other = 0; other < static_cast<int>(peer_fds_.size()); ++other) {
    pollfd ended{peer_fds_[static_cast<size_t>(other)], POLLIN, 0};
    if (ended.fd >= 0 && poll(&ended, 1, 0) > 0) {
      return Fail(absl::StrCat("the process of rank ", other, " has ended"));
    }
  }
  return absl::OkStatus();
}

absl::Status SharedMemoryGroup::Fail(const std::string& what) const {
  reinterpret_cast<Header*>(base_)->failed = 1;
  return absl::UnavailableError(absl::StrCat("shared memory of rank ", rank_, ": ", what));
}

// values: this rank's chunk, which is also in its ring; becomes the sum.
void SharedMemoryGroup::AddChunk(absl::Span<float> values, float scale) const {
  const float* chunks[kMostDirect] = {};
  for (int rank = 0; rank < world_size_; ++rank) {
    const char* ring = chunk(rank, taken_);
    chunks[rank] = rank == rank_ ? values.data() : reinterpret_cast<const float*>(ring);
  }
  const float *a = chunks[0], *b = chunks[1], *c = chunks[2];
  float* out = values.data();
  const size_t count = values.size();
  if (world_size_ == 2) {
    for (size_t i = 0; i < count; ++i) out[i] = (a[i] + b[i]) * scale;
  } else {
    for (size_t i = 0; i < count; ++i) out[i] = (a[i] + b[i] + c[i]) * scale;
  }
}

absl::Status SharedMemoryGroup::Sum(absl::Span<float> values, float scale) {
  if (world_size_ > kMostDirect) return SumByParts(values, scale);
  constexpr size_t kCount = kChunkBytes / sizeof(float);
  size_t put = 0, added = 0;  // numbers of values
  while (added < values.size()) {
    // True once all ranks have read the chunk that the next one overwrites.
    const uint32_t read = put_ + 1 - kChunks;
    if (put > added && AllHave(&Seat::put, taken_ + 1)) {
      AddChunk(values.subspan(added, kCount), scale);
      added += kCount;
      MarkTaken();
    } else if (put < values.size() && AllHave(&Seat::taken, read)) {
      const absl::Span<float> next = values.subspan(put, kCount);
      std::memcpy(chunk(rank_, put_), next.data(), next.size() * sizeof(float));
      put += kCount;
      Announce();
    } else if (put > added) {
      RETURN_IF_ERROR(WaitForAll(&Seat::put, taken_ + 1));
    } else {
      RETURN_IF_ERROR(WaitForAll(&Seat::taken, read));
    }
  }
  return absl::OkStatus();
}

absl::Status SharedMemoryGroup::SumByParts(absl::Span<float> values, float scale) {
  constexpr size_t kCount = kPartBytes / sizeof(float);
  const size_t ranks = static_cast<size_t>(world_size_), self = static_cast<size_t>(rank_);
  for (size_t begin = 0; begin < values.size(); begin += kCount, ++turn_) {
    const absl::Span<float> all = values.subspan(begin, kCount);
    std::memcpy(part(rank_), all.data(), all.size() * sizeof(float));
    RETURN_IF_ERROR(Barrier());
    const size_t share = (all.size() + ranks - 1) / ranks;
    const size_t first = std::min(all.size(), self * share);
    const size_t count = std::min(share, all.size() - first);
    const auto part_of = [&](int rank) { return reinterpret_cast<float*>(part(rank)) + first; };
    float* out = part_of(world_size_);
    std::copy_n(part_of(0), count, out);
    for (int rank = 1; rank < world_size_; ++rank) {
      const float* more = part_of(rank);
      const float factor = rank + 1 == world_size_ ? scale : 1;
      for (size_t i = 0; i < count; ++i) out[i] = (out[i] + more[i]) * factor;
    }
    RETURN_IF_ERROR(Barrier());
    std::memcpy(all.data(), part(world_size_), all.size() * sizeof(float));
  }
  return absl::OkStatus();
}

absl::Status SharedMemoryGroup::Broadcast(absl::Span<char> bytes) {
  RETURN_IF_ERROR(Barrier());  // after this no rank reads a ring any more
  for (size_t begin = 0; begin < bytes.size(); begin += kChunkBytes) {
    const size_t count = std::min(kChunkBytes, bytes.size() - begin);
    char* shared = chunk(0, put_);
    if (rank_ == 0) std::memcpy(shared, bytes.data() + begin, count);
    RETURN_IF_ERROR(Meet());
    if (rank_ != 0) std::memcpy(bytes.data() + begin, shared, count);
    MarkTaken();
  }
  return absl::OkStatus();
}

}  // namespace traind
