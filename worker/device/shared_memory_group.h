// Collectives between the ranks of one host, through shared memory: no sockets, and no system
// call if the ranks arrive together.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace traind {

// One rank's end of a shared memory segment. Rank 0 makes the segment as an anonymous file of
// the kernel: it has no name in any folder and disappears with the last process that has it
// open or mapped, however that process ends. The other ranks open it through rank 0's entry in
// /proc, so all ranks must have the same host, PID namespace and user; Open() checks that.
//
// A sum is computed in chunks. Each rank writes its chunks one after the other into its own
// ring and announces their number. As soon as all ranks have written a chunk, each rank adds it
// up in the order of the ranks, so that all ranks get the same bits in every run. A rank waits
// only if it can neither write nor add: a rank that lost its core for a while delays no peer
// whose ring has free space. Chunks are small enough to be read from a neighbour's cache. With
// many ranks, each adds up only its part of a larger chunk, and all meet again
// before each reads the whole.
//
// Threads: confined to one per rank (ranks may be threads of one process).
// Errors: Unavailable if a peer's process has ended, or a peer has left or is later than the
// timeout; the group is unusable for all ranks afterwards.
class SharedMemoryGroup {
 public:
  // Makes rank 0's end. address() tells the others where the segment is.
  static absl::StatusOr<std::unique_ptr<SharedMemoryGroup>> Create(int world_size,
                                                                   absl::Duration timeout);
  // Opens another rank's end. FailedPrecondition says why the segment is out of reach.
  static absl::StatusOr<std::unique_ptr<SharedMemoryGroup>> Open(const std::string& address,
                                                                 int rank, int world_size,
                                                                 absl::Duration timeout);
  // Peers that wait for this rank, now or later, fail at once.
  ~SharedMemoryGroup();
  SharedMemoryGroup(const SharedMemoryGroup&) = delete;
  SharedMemoryGroup& operator=(const SharedMemoryGroup&) = delete;

  const std::string& address() const { return address_; }
  // From now on nobody can open the segment. REQUIRES: every peer has opened it.
  absl::Status Seal();

  // values[i] becomes scale x its sum over the ranks. REQUIRES: the same size on each rank.
  absl::Status Sum(absl::Span<float> values, float scale);
  // bytes become those of rank 0.
  absl::Status Broadcast(absl::Span<char> bytes);
  absl::Status Barrier();

 private:
  struct Header;
  struct Counter;
  struct Seat;

  SharedMemoryGroup(int rank, int world_size, absl::Duration timeout);
  absl::Status Map(int fd);

  Seat& seat(int rank) const;
  char* chunk(int rank, uint32_t index) const;  // in a rank's ring
  char* part(int rank) const;                   // of the current turn, used with many ranks
  void Announce();      // counts a chunk that was written, or a meeting that was joined
  void MarkTaken();     // counts a chunk that was read, or a meeting that was left
  absl::Status Meet();  // waits until all ranks are here; MarkTaken() must follow
  bool AllHave(Counter Seat::*which, uint32_t count) const;
  absl::Status WaitForAll(Counter Seat::*which, uint32_t count);
  absl::Status WaitFor(int peer, Counter& counter, uint32_t count);
  absl::Status CheckPeer(int peer, absl::Duration waited) const;
  absl::Status Fail(const std::string& what) const;
  void AddChunk(absl::Span<float> values, float scale) const;
  absl::Status SumByParts(absl::Span<float> values, float scale);

  const int rank_;
  const int world_size_;
  const absl::Duration timeout_;
  int spins_ = 0;
  std::string address_;
  int fd_ = -1;
  char* base_ = nullptr;
  size_t bytes_ = 0, seats_bytes_ = 0;
  std::vector<int> peer_fds_;  // pidfds; -1: none, for example for a thread of this process
  uint32_t put_ = 0;           // chunks written and meetings joined by this rank
  uint32_t taken_ = 0;         // chunks read and meetings left by this rank
  uint32_t turn_ = 0;          // which of the two parts is next, used with many ranks
};

}  // namespace traind
