#include "worker/device/shared_memory_group.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
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

#include "common/durable_file.h"
#include "common/status_macros.h"

namespace traind {
namespace {

constexpr size_t kSlotBytes = 1 << 20;  // two per rank stay within most second level caches
constexpr size_t kPage = 4096;
constexpr size_t kLine = 128;   // two cache lines: neighbours are fetched in pairs
constexpr int kMostDirect = 3;  // ranks: above, reading all of every slot costs more than meeting
// About 100 us: a peer that computes the same is rarely later. Where it is, as on a
// machine that does more than this, the next spin is half as long.
constexpr int kSpins = 4000, kLeastSpins = 32;
constexpr absl::Duration kLookAround = absl::Milliseconds(20);  // between checks of the peers

void Relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// What tells one kernel's PID namespace from all others.
std::string Host() {
  char space[64] = "";
  const ssize_t size = readlink("/proc/self/ns/pid", space, sizeof space - 1);
  auto boot = ReadFile("/proc/sys/kernel/random/boot_id");
  if (size <= 0 || !boot.ok()) return "";
  while (!boot->empty() && boot->back() == '\n') boot->pop_back();
  return absl::StrCat(*boot, "/", absl::string_view(space, static_cast<size_t>(size)));
}

int CoresOfThisProcess() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

}  // namespace

struct SharedMemoryGroup::Header {
  uint64_t nonce;  // the segment's, also in its address
  uint64_t world_size;
  std::atomic<uint32_t> failed;  // by one rank: the others need not wait
};

// A rank's place in the segment; the first member is a futex.
struct SharedMemoryGroup::Seat {
  std::atomic<uint32_t> meetings;  // it has come to
  std::atomic<uint32_t> waiting;   // threads that sleep until that changes
  std::atomic<uint32_t> left;
  std::atomic<int32_t> pid;
};

SharedMemoryGroup::SharedMemoryGroup(int rank, int world_size, absl::Duration timeout)
    : rank_(rank),
      world_size_(world_size),
      timeout_(timeout),
      // Without a core for each, spinning keeps the one away that is waited for.
      spins_(CoresOfThisProcess() >= world_size ? kSpins : 0) {}

absl::Status SharedMemoryGroup::Map(int fd) {
  fd_ = fd;
  const size_t seats = (static_cast<size_t>(world_size_) * kLine + kPage - 1) / kPage * kPage;
  bytes_ = kPage + seats + (static_cast<size_t>(world_size_) + 1) * 2 * kSlotBytes;
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
    return absl::FailedPreconditionError(absl::StrCat("no segment's address: ", address));
  }
  // Elsewhere that process number is somebody else's.
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
    syscall(SYS_futex, &own.meetings, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
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
    peer_fds_[static_cast<size_t>(peer)] = fd;  // an old kernel has none: the timeout remains
  }
  return absl::OkStatus();
}

SharedMemoryGroup::Seat& SharedMemoryGroup::seat(int rank) const {
  return *reinterpret_cast<Seat*>(base_ + kPage + static_cast<size_t>(rank) * kLine);
}

char* SharedMemoryGroup::slot(int rank) const {
  const size_t seats = (static_cast<size_t>(world_size_) * kLine + kPage - 1) / kPage * kPage;
  return base_ + kPage + seats + (2 * static_cast<size_t>(rank) + turn_ % 2) * kSlotBytes;
}

char* SharedMemoryGroup::result() const { return slot(world_size_); }

absl::Status SharedMemoryGroup::Meet() {
  Seat& own = seat(rank_);
  own.meetings.store(++meetings_);
  // Sequentially consistent, as is the waiter's part: one of the two sees the other.
  if (own.waiting.load() > 0) {
    syscall(SYS_futex, &own.meetings, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
  for (int peer = 0; peer < world_size_; ++peer) {
    if (peer != rank_) RETURN_IF_ERROR(WaitFor(peer, meetings_));
  }
  return absl::OkStatus();
}

absl::Status SharedMemoryGroup::WaitFor(int peer, uint32_t turn) {
  Seat& other = seat(peer);
  const auto here = [&](uint32_t seen) { return static_cast<int32_t>(seen - turn) >= 0; };
  for (int i = 0; i <= spins_; ++i) {
    if (here(other.meetings.load(std::memory_order_acquire))) {
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
    other.waiting.fetch_add(1);
    const uint32_t seen = other.meetings.load();
    if (!here(seen)) syscall(SYS_futex, &other.meetings, FUTEX_WAIT, seen, &slice, nullptr, 0);
    other.waiting.fetch_sub(1);
    if (here(other.meetings.load())) return absl::OkStatus();
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

// The values begin..end-1 of this turn's slots.
void SharedMemoryGroup::AddUp(size_t begin, size_t end, float scale, float* out) const {
  const auto values = [this](int rank) { return reinterpret_cast<const float*>(slot(rank)); };
  const float* a = values(0);
  const float* b = values(1);
  if (world_size_ == 2) {
    for (size_t i = begin; i < end; ++i) out[i] = (a[i] + b[i]) * scale;
    return;
  }
  for (size_t i = begin; i < end; ++i) out[i] = a[i] + b[i];
  for (int rank = 2; rank < world_size_; ++rank) {
    const float* c = values(rank);
    const float factor = rank + 1 == world_size_ ? scale : 1;
    for (size_t i = begin; i < end; ++i) out[i] = (out[i] + c[i]) * factor;
  }
}

absl::Status SharedMemoryGroup::Sum(absl::Span<float> values, float scale) {
  constexpr size_t kChunk = kSlotBytes / sizeof(float);
  const size_t ranks = static_cast<size_t>(world_size_), self = static_cast<size_t>(rank_);
  for (size_t begin = 0; begin < values.size(); begin += kChunk, ++turn_) {
    const absl::Span<float> chunk = values.subspan(begin, kChunk);
    const size_t count = chunk.size();
    std::memcpy(slot(rank_), chunk.data(), count * sizeof(float));
    RETURN_IF_ERROR(Meet());
    if (world_size_ <= kMostDirect) {
      AddUp(0, count, scale, chunk.data());
      continue;
    }
    const size_t share = (count + ranks - 1) / ranks;
    AddUp(std::min(count, self * share), std::min(count, (self + 1) * share), scale,
          reinterpret_cast<float*>(result()));
    RETURN_IF_ERROR(Meet());
    std::memcpy(chunk.data(), result(), count * sizeof(float));
  }
  return absl::OkStatus();
}

absl::Status SharedMemoryGroup::Broadcast(absl::Span<char> bytes) {
  for (size_t begin = 0; begin < bytes.size(); begin += kSlotBytes, ++turn_) {
    const size_t count = std::min(kSlotBytes, bytes.size() - begin);
    if (rank_ == 0) std::memcpy(slot(0), bytes.data() + begin, count);
    RETURN_IF_ERROR(Meet());
    if (rank_ != 0) std::memcpy(bytes.data() + begin, slot(0), count);
  }
  return absl::OkStatus();
}

absl::Status SharedMemoryGroup::Barrier() { return Meet(); }

}  // namespace traind
