#include "server/store/job_search.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "common/base/status_macros.h"

namespace traind {
namespace {

using sqlite::Connection;
using sqlite::Query;

// Jumps in all lists together; one takes a few microseconds.
constexpr int kMostJumps = 2000;

// Returns the number that the query selects; 0: none.
absl::StatusOr<int64_t> NumberOf(Query query) {
  int64_t number = 0;
  if (query.Next()) query.Read(number);
  RETURN_IF_ERROR(query.status());
  return number;
}

// A list of numbers in an index.
class NumberList {
 public:
  virtual ~NumberList() = default;

  // Returns the largest number below `bound`, 0 if there is none. Counts jumps, because a number
  // that was found before often answers again.
  absl::StatusOr<int64_t> Below(int64_t bound, int& jumps) {
    if (found_ >= bound) {
      ++jumps;
      ASSIGN_OR_RETURN(found_, Jump(bound));
    }
    return found_;
  }

 private:
  virtual absl::StatusOr<int64_t> Jump(int64_t bound) = 0;
  int64_t found_ = std::numeric_limits<int64_t>::max();
};

class AllJobs final : public NumberList {
 public:
  explicit AllJobs(Connection& db) : db_(db) {}

 private:
  absl::StatusOr<int64_t> Jump(int64_t bound) override {
    return NumberOf(
        db_.Select("SELECT number FROM jobs WHERE number < ? ORDER BY number DESC LIMIT 1", bound));
  }
  Connection& db_;
};

class JobsInState final : public NumberList {
 public:
  JobsInState(Connection& db, JobState state) : db_(db), state_(state) {}

 private:
  absl::StatusOr<int64_t> Jump(int64_t bound) override {
    return NumberOf(
        db_.Select("SELECT number FROM jobs INDEXED BY jobs_by_state "
                   "WHERE state = ? AND number < ? ORDER BY number DESC LIMIT 1",
                   state_, bound));
  }
  Connection& db_;
  const JobState state_;
};

class JobsWithLabel final : public NumberList {
 public:
  JobsWithLabel(Connection& db, const std::string& key, const std::string& value)
      : db_(db), key_(key), value_(value) {}

 private:
  absl::StatusOr<int64_t> Jump(int64_t bound) override {
    return NumberOf(
        db_.Select("SELECT job FROM job_labels INDEXED BY job_labels_by_value "
                   "WHERE key = ? AND value = ? AND job < ? ORDER BY job DESC LIMIT 1",
                   key_, value_, bound));
  }
  Connection& db_;
  const std::string& key_;
  const std::string& value_;
};

}  // namespace

// Fits a Job that is in any of the lists.
class JobSearch::Condition {
 public:
  void Add(std::unique_ptr<NumberList> list) { lists_.push_back(std::move(list)); }
  absl::StatusOr<int64_t> Below(int64_t bound, int& jumps) {
    int64_t largest = 0;
    for (const auto& list : lists_) {
      ASSIGN_OR_RETURN(const int64_t number, list->Below(bound, jumps));
      largest = std::max(largest, number);
    }
    return largest;
  }

 private:
  std::vector<std::unique_ptr<NumberList>> lists_;
};

JobSearch::JobSearch(Connection& db, const JobFilter& filter, int64_t below) : below_(below) {
  const auto add = [this](std::unique_ptr<NumberList> list) {
    conditions_.push_back(std::make_unique<Condition>());
    conditions_.back()->Add(std::move(list));
  };
  for (const auto& [key, value] : filter.labels) {
    add(std::make_unique<JobsWithLabel>(db, key, value));
  }
  if (!filter.states.empty()) {
    conditions_.push_back(std::make_unique<Condition>());
    for (const JobState state : filter.states) {
      conditions_.back()->Add(std::make_unique<JobsInState>(db, state));
    }
  }
  if (conditions_.empty()) add(std::make_unique<AllJobs>(db));
}

JobSearch::~JobSearch() = default;

absl::StatusOr<int64_t> JobSearch::Next() {
  while (jumps_ < kMostJumps) {
    ASSIGN_OR_RETURN(const int64_t candidate, conditions_[0]->Below(below_, jumps_));
    int64_t least = candidate;
    for (size_t i = 1; i < conditions_.size() && least == candidate && least > 0; ++i) {
      ASSIGN_OR_RETURN(least, conditions_[i]->Below(candidate + 1, jumps_));
    }
    if (least == 0) return 0;
    if (least == candidate) return below_ = candidate;
    below_ = least + 1;  // no larger number fits all
  }
  interrupted_ = true;
  return 0;
}

}  // namespace traind
