#include "server/plan/transfers.h"

#include <algorithm>
#include <map>

namespace traind {
namespace {

// Small files tell how long a call takes, and little of how fast a large file travels.
constexpr int64_t kLikeEnough = 10;

struct Way {
  int64_t bytes = 0;
  double seconds = 0;

  void Add(int64_t more_bytes, double more_s) {
    if (more_bytes <= 0 || more_s <= 0) return;
    bytes += more_bytes;
    seconds += more_s;
  }
  // 0: not measured
  double SecondsFor(int64_t wanted) const {
    return bytes > 0 ? seconds / static_cast<double>(bytes) * static_cast<double>(wanted) : 0;
  }
};

// The way there by the files that went there, or by both ways where those were few.
double SecondsOf(int64_t bytes, const Way& there, Way back) {
  if (there.bytes >= bytes / kLikeEnough && there.bytes > 0) return there.SecondsFor(bytes);
  back.Add(there.bytes, there.seconds);
  return back.SecondsFor(bytes);
}

void AddTo(Way& fetched, Way& sent, const Attempt& attempt) {
  fetched.Add(attempt.transfers.fetched_bytes, attempt.transfers.fetch_s);
  sent.Add(attempt.transfers.sent_bytes, attempt.transfers.send_s);
}

}  // namespace

bool FilesTravel(const std::vector<Attempt>& attempts) {
  return std::any_of(attempts.begin(), attempts.end(), [](const Attempt& attempt) {
    return attempt.transfers.fetched_bytes > 0 || attempt.transfers.sent_bytes > 0;
  });
}

double FetchSeconds(const std::vector<Attempt>& attempts, const TransferPlaces& places) {
  Way fetched, sent;
  int64_t table_bytes = 0;
  // By Worker that has the files: the least that it took to find that out. 0: not measured.
  std::map<std::string, double> there;
  for (const Attempt& attempt : attempts) {
    const facts::Transfers& told = attempt.transfers;
    AddTo(fetched, sent, attempt);
    const bool trains = attempt.kind == TaskKind::kTrain;
    // PREPARE sends the table that a fold fetches.
    table_bytes = std::max(table_bytes, trains ? told.fetched_bytes : told.sent_bytes);
    if (trains ? told.fetch_s <= 0 : told.sent_bytes <= 0) continue;
    double& least_s = there[attempt.worker];
    const bool looked = trains && told.fetched_bytes == 0;
    if (looked && (least_s <= 0 || told.fetch_s < least_s)) least_s = told.fetch_s;
  }
  const double table_s = SecondsOf(table_bytes, fetched, sent);
  double seconds = 0;
  int lack = places.own;
  for (const auto& [worker, slots] : places.known) {
    const auto found = there.find(worker);
    if (found == there.end()) continue;
    seconds += slots * found->second;
    lack -= slots;
  }
  seconds += lack * table_s;
  return places.slots > 0 ? seconds / places.slots : 0;
}

int64_t ResultBytes(const Job& job) {
  int64_t checkpoint_bytes = 0;
  for (const Task& task : job.tasks) {
    if (task.checkpoint) checkpoint_bytes = std::max(checkpoint_bytes, task.checkpoint->bytes);
  }
  constexpr int64_t kBytesOfValue = sizeof(float);
  const int64_t rows = job.table.train_rows / std::max(1, job.spec.folds) + job.table.test_rows;
  return 2 * checkpoint_bytes + rows * std::max(1, job.table.classes) * kBytesOfValue;
}

double SendSeconds(const std::vector<Attempt>& attempts, int64_t bytes) {
  Way fetched, sent;
  for (const Attempt& attempt : attempts) AddTo(fetched, sent, attempt);
  return SecondsOf(bytes, sent, fetched);
}

}  // namespace traind
