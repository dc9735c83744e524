// Reads and writes the events of a Job, which are chained by digests.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "server/store/sqlite.h"
#include "server/store/store.h"

namespace traind {

// The end of a Job's events.
struct EventChain {
  std::string digest;         // of the last event and all before it; of none: the Job's id
  int64_t next_position = 0;  // in job_events
};

absl::StatusOr<EventChain> ReadEventChain(sqlite::Connection& db, int64_t job,
                                          const std::string& id);

// Appends an event and moves the chain.
absl::Status WriteEvent(sqlite::Connection& db, int64_t job, const Mutations::Event& event,
                        EventChain& chain);

// Errors: as Store::GetEvents.
absl::StatusOr<std::vector<StoredEvent>> ReadEvents(sqlite::Connection& db, const std::string& id,
                                                    int64_t after_sequence, int limit);

}  // namespace traind
