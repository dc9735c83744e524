// Facts on their way to traind.
#pragma once

#include <absl/time/time.h>

#include <deque>
#include <vector>

#include "proto/worker_service.pb.h"

namespace traind::worker {

// Numbers the facts of this process and keeps them until their Ack. Nothing in it
// is ever dropped: Progress, which may be, does not go through it.
// Threads: confined to the event loop's.
class Outbox {
 public:
  // Sets the sequence of a fact; it is to be sent now if traind is there.
  const v1::WorkerMessage& Add(v1::WorkerMessage fact, absl::Duration now);
  // All up to sequence are durable.
  void Ack(int64_t sequence);
  // Returns the messages without an Ack, in order: they are sent again on a new stream.
  std::vector<v1::WorkerMessage> Unacked() const;

  bool empty() const { return facts_.empty(); }
  size_t size() const { return facts_.size(); }
  // How long the oldest has waited since it was added, or since the last Reset.
  absl::Duration Waiting(absl::Duration now) const;
  // A new stream: the waiting starts anew.
  void Reset(absl::Duration now);

 private:
  struct Fact {
    v1::WorkerMessage message;
    absl::Duration since;
  };
  std::deque<Fact> facts_;
  int64_t next_sequence_ = 1;
};

}  // namespace traind::worker
