// Finds the Jobs that fit a filter by indices, with a limit on the work.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "server/store/sqlite.h"
#include "server/store/store.h"

namespace traind {

// Yields the numbers of the Jobs that fit, from the newest to the oldest. Each condition is a list
// of numbers in an index; their intersection is found by jumping in each list to the largest number
// that the others still allow.
// Threads: those of the connection. Ownership: connection and filter outlive it.
class JobSearch {
 public:
  // Numbers below `below` count.
  JobSearch(sqlite::Connection& db, const JobFilter& filter, int64_t below);
  ~JobSearch();

  // Returns 0 if there is no more, or if too much was looked at (see interrupted).
  absl::StatusOr<int64_t> Next();
  // The limit on the work is reached. A search that begins below `below()` goes on from here.
  bool interrupted() const { return interrupted_; }
  int64_t below() const { return below_; }

 private:
  class Condition;

  std::vector<std::unique_ptr<Condition>> conditions_;
  int64_t below_;
  int jumps_ = 0;
  bool interrupted_ = false;
};

}  // namespace traind
