// Collectives between the ranks of one host, through memory that they share: no
// sockets, no system call where the ranks arrive together.
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

// Rank 0 makes the segment, an anonymous file of the kernel's: it has no name in any
// folder and goes with the last process that has it open or mapped, however that
// process ends. The others open it through rank 0's entry in /proc, so all have to be
// of one host, PID namespace and user; Open() finds out.
//
// A sum is taken in chunks. Each rank puts its chunks one after the other into a ring of
// its own and says how many there are; as soon as all have put one, it adds them up in the
// order of the ranks, so that every rank has the same bits, in every run. It waits only
// where neither is possible: a rank that lost its core for a while holds up nobody that
// has room in its ring. Chunks are small enough to be read from a neighbour's cache.
// Where there are many ranks each adds up only its part of a larger chunk, and they meet
// once more before each takes the whole.
//
// Threads: confined to one per rank (ranks may be threads of one process).
// Errors: Unavailable where a peer's process has ended, a peer has left, or did not
// come within the timeout; after that the group is of no more use, to any of them.
class SharedMemoryGroup {
 public:
  // Rank 0's: `address` tells the others where the segment is.
  static absl::StatusOr<std::unique_ptr<SharedMemoryGroup>> Create(int world_size,
                                                                   absl::Duration timeout);
  // FailedPrecondition: out of reach from here, says why.
  static absl::StatusOr<std::unique_ptr<SharedMemoryGroup>> Open(const std::string& address,
                                                                 int rank, int world_size,
                                                                 absl::Duration timeout);
  // Peers that wait for this rank, now or later, fail at once.
  ~SharedMemoryGroup();
  SharedMemoryGroup(const SharedMemoryGroup&) = delete;
  SharedMemoryGroup& operator=(const SharedMemoryGroup&) = delete;

  const std::string& address() const { return address_; }
  // REQUIRES: every peer has opened the segment. Nobody can open it any more.
  absl::Status Seal();

  // values[i] becomes scale x its sum over the ranks. REQUIRES: as many on each rank.
  absl::Status Sum(absl::Span<float> values, float scale);
  // bytes become rank 0's.
  absl::Status Broadcast(absl::Span<char> bytes);
  absl::Status Barrier();

 private:
  struct Header;
  struct Counter;
  struct Seat;

  SharedMemoryGroup(int rank, int world_size, absl::Duration timeout);
  absl::Status Map(int fd);

  Seat& seat(int rank) const;
  char* chunk(int rank, uint32_t index) const;  // of a rank's ring
  char* part(int rank) const;                   // of this turn, where there are many ranks
  void Announce();                              // one more: a chunk, or having come here
  void Take();                                  // one more
  absl::Status Meet();  // all ranks have come here; to be followed by Take()
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
  std::vector<int> peer_fds_;  // pidfds; -1: none, as for a thread of this process
  uint32_t put_ = 0;           // chunks, and meetings, of this rank
  uint32_t taken_ = 0;         // of all ranks, by this one
  uint32_t turn_ = 0;          // which of two parts is next, where there are many ranks
};

}  // namespace traind
