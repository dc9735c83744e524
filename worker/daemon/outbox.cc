#include "worker/daemon/outbox.h"

#include <utility>

namespace traind::worker {

const v1::WorkerMessage& Outbox::Add(v1::WorkerMessage fact, absl::Duration now) {
  fact.set_sequence(next_sequence_++);
  return facts_.emplace_back(Fact{std::move(fact), now}).message;
}

void Outbox::Ack(int64_t sequence) {
  while (!facts_.empty() && facts_.front().message.sequence() <= sequence) facts_.pop_front();
}

std::vector<v1::WorkerMessage> Outbox::Unacked() const {
  std::vector<v1::WorkerMessage> messages;
  for (const Fact& fact : facts_) messages.push_back(fact.message);
  return messages;
}

absl::Duration Outbox::Waiting(absl::Duration now) const {
  return facts_.empty() ? absl::ZeroDuration() : now - facts_.front().since;
}

void Outbox::Reset(absl::Duration now) {
  for (Fact& fact : facts_) fact.since = now;
}

}  // namespace traind::worker
