#include "server/store/event_rows.h"

#include <absl/strings/str_cat.h>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"

namespace traind {
namespace {

using sqlite::Connection;
using sqlite::Query;

std::string Digest(const std::string& before, int64_t position, absl::Time at,
                   const std::string& kind, const std::string& detail) {
  return Sha256Hex(absl::StrCat(before, " ", position, " ", absl::ToUnixMillis(at), " ",
                                kind.size(), " ", kind, " ", detail));
}

}  // namespace

absl::StatusOr<EventChain> ReadEventChain(Connection& db, int64_t job, const std::string& id) {
  EventChain chain{id};
  Query q = db.Select(
      "SELECT chain, position + 1 FROM job_events WHERE job = ? ORDER BY position DESC LIMIT 1",
      job);
  if (q.Next()) q.Read(chain.digest, chain.next_position);
  RETURN_IF_ERROR(q.status());
  return chain;
}

absl::Status WriteEvent(Connection& db, int64_t job, const Mutations::Event& event,
                        EventChain& chain) {
  chain.digest = Digest(chain.digest, chain.next_position, event.at, event.kind, event.detail);
  return db.Run(
      "INSERT INTO job_events(job, position, at_ms, kind, detail, chain) VALUES(?, ?, ?, ?, ?, ?)",
      job, chain.next_position++, event.at, event.kind, event.detail, chain.digest);
}

absl::StatusOr<std::vector<StoredEvent>> ReadEvents(Connection& db, const std::string& id,
                                                    int64_t after_sequence, int limit) {
  std::vector<StoredEvent> events;
  // The event before the first one of the page tells the digest to start with.
  Query q = db.Select(
      "SELECT position + 1, at_ms, kind, detail, chain FROM job_events JOIN jobs ON jobs.number = "
      "job WHERE jobs.id = ? AND deleting = 0 AND position >= ? - 1 ORDER BY position LIMIT ?",
      id, after_sequence, after_sequence > 0 ? limit + 1 : limit);
  std::string before = id;
  int64_t expected = 0;  // the sequence of the next event; 0: any
  while (q.Next()) {
    StoredEvent event;
    std::string chain;
    q.Read(event.sequence, event.at, event.kind, event.detail, chain);
    // Retention removes events from the front on, so the first one that is left starts a chain.
    const bool missing = expected != 0 && event.sequence != expected;
    const bool checked = !chain.empty() && (expected != 0 || event.sequence == 1);
    if (missing || (checked && chain != Digest(before, event.sequence - 1, event.at, event.kind,
                                               event.detail))) {
      return absl::DataLossError(absl::StrCat("event ", event.sequence, " of job ", id,
                                              " does not follow from the one before it: the "
                                              "record was changed or is damaged"));
    }
    before = std::move(chain);
    expected = event.sequence + 1;
    if (event.sequence > after_sequence && static_cast<int>(events.size()) < limit) {
      events.push_back(std::move(event));
    }
  }
  RETURN_IF_ERROR(q.status());
  return events;
}

}  // namespace traind
