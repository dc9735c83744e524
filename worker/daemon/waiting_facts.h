// Facts of Attempts that wait until traind has the files that they name.
#pragma once

#include <absl/time/time.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "worker/daemon/file_carrier.h"
#include "worker/daemon/task.h"

namespace traind::worker {

// Keeps the order of each Attempt's facts: one that names no file waits behind one that does.
// Progress does not wait; it is dropped then. Adds the fact that tells what has travelled.
// Threads: confined to the event loop's.
class WaitingFacts {
 public:
  // An Attempt's files are fetched, and its facts may come, from now on.
  void Started(const TaskStart& task, absl::Duration now);
  // The Attempt's files are here, after so many bytes; what it tells of them names them as their
  // user does. Returns the facts that may be told now.
  std::vector<ReportAction> Brought(int64_t attempt, PathNames names, int64_t bytes,
                                    absl::Duration now);
  // Returns the facts that may be told now: this one, or none.
  std::vector<ReportAction> Add(ReportAction fact);
  // The Job's Rank has made a Prediction of a file here, which is to be sent. Returns its Attempt;
  // 0: none of it is known.
  int64_t Published(const std::string& job);
  // Returns what is to be sent for the Attempt now; nothing: it is being sent, or nothing waits.
  std::optional<SendRequest> NextSend(int64_t attempt, absl::Duration now);
  // The send has ended, after so many bytes. Returns the facts that may be told now; those whose
  // files did not get there are lost, except the end of the Attempt.
  std::vector<ReportAction> Sent(int64_t attempt, bool ok, int64_t bytes, absl::Duration now);

  // What a send for the Attempt would be of; null: its files do not travel, or it is over.
  const SendRequest* RequestOf(int64_t attempt) const;

  // Attempts with facts that wait.
  std::vector<int64_t> Attempts() const;
  // Jobs with Attempts that have not told their end.
  std::set<std::string> Jobs() const;

 private:
  struct Queue {
    SendRequest request;
    PathNames names;
    std::deque<ReportAction> facts;
    bool published = false;  // since the last send began
    bool sends = false;
    size_t covered = 0;    // by the send that is under way
    absl::Duration since;  // when the transfer that is under way began, or the last one
    facts::Transfers transfers;
  };
  std::map<int64_t, Queue> queues_;
};

}  // namespace traind::worker
