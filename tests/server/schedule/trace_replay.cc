#include "tests/server/schedule/trace_replay.h"

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "server/schedule/owner_shares.h"
#include "server/schedule/preemption.h"
#include "server/schedule/scheduler.h"

namespace traind {
namespace {

// As the control core has them (CoreOptions).
constexpr absl::Duration kPreemptAfter = absl::Seconds(10), kLeastRun = absl::Seconds(30),
                         kPause = absl::Minutes(5);
// A stop: the checkpoint is saved, and the next start loads it.
constexpr absl::Duration kSave = absl::Seconds(5), kLoad = absl::Seconds(10);
constexpr absl::Duration kCheckpointEvery = absl::Minutes(1);
// So many of those that wait are offered.
constexpr size_t kOffered = 256, kClaims = 32;

struct Run {
  absl::Time started = absl::InfiniteFuture();  // of this try
  absl::Time ends = absl::InfiniteFuture();
  absl::Time preempted = absl::InfinitePast();
  absl::Duration left;  // of its work
  std::vector<GangPart> parts;
  bool waits = false, over = false, done = false, stops = false;
  absl::Time waits_since;
  absl::Time finished;
  int tries = 0;
};

class Simulator {
 public:
  Simulator(const std::vector<TraceJob>& trace, const Cluster& cluster, Policy policy)
      : trace_(trace), policy_(policy), shares_(absl::Hours(24 * 7)), runs_(trace.size()) {
    for (int w = 0; w < cluster.workers; ++w) {
      WorkerSlots worker;
      worker.worker = absl::StrCat("w", w);
      worker.network = "outer";
      for (int i = 0; i < cluster.slots_each; ++i) worker.slots.push_back({i, "cuda", true});
      workers_[worker.worker] = worker;
      board_.Put(worker);
    }
    slots_ = cluster.workers * cluster.slots_each;
    for (size_t i = 0; i < trace.size(); ++i) {
      runs_[i].left = trace[i].runs;
      events_.push({trace[i].arrives, kArrives, i, 0});
      if (trace[i].deadline != absl::InfiniteFuture()) {
        events_.push({trace[i].deadline, kDue, i, 0});
      }
    }
  }
  Figures Go();

 private:
  enum Kind { kEnds, kDue, kArrives, kLook };
  struct Event {
    absl::Time at;
    Kind kind;
    size_t job;
    int tries;  // kEnds: of that try
    bool operator<(const Event& other) const {
      return std::tie(other.at, other.kind, other.job) < std::tie(at, kind, job);
    }
  };
  bool Ours() const { return policy_ == Policy::kTraind || policy_ == Policy::kTraindNoPreempt; }

  void Handle(const Event& event);
  void Free(size_t job);
  void Dispatch();
  void Start(size_t job, std::vector<GangPart> parts);
  void Preempt(const std::vector<std::pair<Urgency, size_t>>& line);
  Candidate CandidateOf(size_t job) const;
  std::vector<std::pair<Urgency, size_t>> Line() const;
  Figures Sum() const;

  const std::vector<TraceJob>& trace_;
  const Policy policy_;
  OwnerShares shares_;
  std::vector<Run> runs_;
  std::map<std::string, WorkerSlots> workers_;  // with all slots free
  SlotBoard board_;
  std::priority_queue<Event> events_;
  std::set<size_t> waiting_, running_;
  absl::Time now_;
  absl::Time look_at_ = absl::InfinitePast();
  int slots_ = 0, preemptions_ = 0;
};

Candidate Simulator::CandidateOf(size_t job) const {
  const TraceJob& asked = trace_[job];
  Candidate candidate;
  candidate.shape = {asked.slots, "", {}};
  candidate.may_span = true;
  candidate.folds = {0};
  // What it asks for less what it has done.
  candidate.takes = std::max(asked.asks - (asked.runs - runs_[job].left), absl::Seconds(1));
  Urgency& urgency = candidate.urgency;
  urgency.accepted_at = asked.arrives;
  urgency.sequence = job;
  if (!Ours()) return candidate;
  candidate.owner = asked.owner;
  urgency.priority = asked.priority;
  urgency.share = shares_.Of(asked.owner, now_);
  if (asked.deadline != absl::InfiniteFuture()) {
    urgency.latest_start = asked.deadline - candidate.takes;
  }
  return candidate;
}

std::vector<std::pair<Urgency, size_t>> Simulator::Line() const {
  std::vector<std::pair<Urgency, size_t>> line;
  for (const size_t job : waiting_) line.emplace_back(CandidateOf(job).urgency, job);
  std::sort(line.begin(), line.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return line;
}

// The board forgets what the Job has held.
void Simulator::Free(size_t job) {
  std::vector<std::string> touched;
  for (const GangPart& part : runs_[job].parts) touched.push_back(part.worker);
  shares_.Ended(trace_[job].owner, trace_[job].slots, runs_[job].started, now_);
  runs_[job].parts.clear();
  running_.erase(job);
  for (const std::string& name : touched) board_.Put(workers_.at(name));
  for (const size_t other : running_) {
    for (const GangPart& part : runs_[other].parts) {
      if (std::find(touched.begin(), touched.end(), part.worker) == touched.end()) continue;
      board_.Take(part);
      board_.ExpectFree(part.worker, part.slots, runs_[other].started + CandidateOf(other).takes);
    }
  }
}

void Simulator::Start(size_t job, std::vector<GangPart> parts) {
  Run& run = runs_[job];
  waiting_.erase(job);
  running_.insert(job);
  run.waits = run.stops = false;
  run.started = now_;
  run.parts = std::move(parts);
  run.ends = now_ + run.left + (run.tries > 0 ? kLoad : absl::ZeroDuration());
  ++run.tries;
  shares_.Began(trace_[job].owner, trace_[job].slots, now_);
  for (const GangPart& part : run.parts) {
    board_.ExpectFree(part.worker, part.slots, now_ + CandidateOf(job).takes);
  }
  events_.push({run.ends, kEnds, job, run.tries});
}

void Simulator::Handle(const Event& event) {
  Run& run = runs_[event.job];
  switch (event.kind) {
    case kLook:
      return;
    case kArrives:
      run.waits = true;
      run.waits_since = now_;
      waiting_.insert(event.job);
      return;
    case kDue:
      if (run.over) return;
      run.over = true;
      waiting_.erase(event.job);
      if (!run.parts.empty()) Free(event.job);
      return;
    case kEnds:
      if (run.over || run.parts.empty() || event.tries != run.tries) return;
      Free(event.job);
      if (run.stops) {  // it was told to save and go
        run.preempted = now_;
        run.waits = true;
        run.waits_since = now_;
        waiting_.insert(event.job);
        return;
      }
      run.over = run.done = true;
      run.finished = now_;
      return;
  }
}

void Simulator::Dispatch() {
  if (waiting_.empty()) return;
  const std::vector<std::pair<Urgency, size_t>> line = Line();
  std::vector<Candidate> candidates;
  const size_t offered = std::min(line.size(), kOffered);
  if (policy_ == Policy::kFifo) {
    for (const auto& [urgency, job] : line) {
      const std::vector<Placement> placed = PlaceFolds({{CandidateOf(job)}}, now_, board_);
      if (placed.empty()) break;
      Start(job, placed[0].parts);
    }
    return;
  }
  if (board_.free_slots() > 0) {
    for (size_t i = 0; i < offered; ++i) candidates.push_back(CandidateOf(line[i].second));
    for (Placement& placement : PlaceFolds(candidates, now_, board_)) {
      Start(line[placement.candidate].second, std::move(placement.parts));
    }
  }
  if (policy_ == Policy::kTraind) Preempt(line);
}

void Simulator::Preempt(const std::vector<std::pair<Urgency, size_t>>& in_order) {
  int lowest = std::numeric_limits<int>::max();
  for (const size_t job : running_) lowest = std::min(lowest, trace_[job].priority);
  std::vector<Claim> line;
  std::vector<size_t> jobs;
  absl::Time next = absl::InfiniteFuture();
  bool any_due = false;
  for (const auto& [urgency, job] : in_order) {
    if (urgency.priority <= lowest || line.size() == kClaims) break;
    if (!runs_[job].waits) continue;  // started just now
    Claim& claim = line.emplace_back();
    claim.candidate = CandidateOf(job);
    const absl::Time due = std::min(runs_[job].waits_since + kPreemptAfter,
                                    claim.candidate.urgency.latest_start - kPreemptAfter);
    claim.due = due <= now_;
    any_due |= claim.due;
    if (!claim.due) next = std::min(next, due);
    jobs.push_back(job);
  }
  if (any_due) {
    std::vector<Holding> holdings;
    for (const size_t job : running_) {
      const Run& run = runs_[job];
      const TraceJob& asked = trace_[job];
      Holding& holding = holdings.emplace_back();
      holding.attempt = static_cast<int64_t>(job);
      holding.priority = asked.priority;
      holding.parts = run.parts;
      const bool bounded = asked.deadline != absl::InfiniteFuture();
      const absl::Duration ran = now_ - run.started;
      const absl::Duration spare =
          asked.deadline - now_ - std::max(absl::ZeroDuration(), CandidateOf(job).takes - ran);
      holding.harm = bounded ? Harm::kModel : Harm::kTime;
      holding.may_go =
          !run.stops && ran >= kLeastRun && now_ >= run.preempted + kPause &&
          (!bounded || spare > std::max(3 * kPreemptAfter, 0.1 * (asked.deadline - asked.arrives)));
      holding.lost_s = asked.slots * absl::ToDoubleSeconds(std::min(ran, kCheckpointEvery));
    }
    for (const Preemption& preemption :
         ChoosePreemptions(line, holdings, now_, kPreemptAfter, board_)) {
      for (const int64_t attempt : preemption.attempts) {
        const auto job = static_cast<size_t>(attempt);
        Run& run = runs_[job];
        const absl::Time gone = now_ + kSave;
        if (run.ends <= gone) continue;
        const absl::Duration loads = run.tries > 1 ? kLoad : absl::ZeroDuration();
        run.left -= std::max(absl::ZeroDuration(), now_ - run.started - loads);
        run.stops = true;
        ++preemptions_;
        for (const GangPart& part : run.parts) board_.ExpectFree(part.worker, part.slots, gone);
        events_.push({gone, kEnds, job, ++run.tries});
      }
    }
    next = std::min(next, now_ + kPreemptAfter);
  }
  if (next != absl::InfiniteFuture() && (look_at_ <= now_ || next < look_at_)) {
    look_at_ = std::max(next, now_ + absl::Milliseconds(1));
    events_.push({look_at_, kLook, 0, 0});
  }
}

Figures Simulator::Go() {
  const absl::Time began = absl::Now();
  while (!events_.empty()) {
    now_ = events_.top().at;
    while (!events_.empty() && events_.top().at == now_) {
      const Event event = events_.top();
      events_.pop();
      Handle(event);
    }
    Dispatch();
  }
  Figures figures = Sum();
  figures.wall_s = absl::ToDoubleSeconds(absl::Now() - began);
  return figures;
}

double Percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

Figures Simulator::Sum() const {
  Figures figures;
  figures.preemptions = preemptions_;
  std::vector<double> slowdowns, high;
  std::map<std::string, std::pair<double, int>> by_owner;
  int highest = std::numeric_limits<int>::min();
  for (const TraceJob& job : trace_) highest = std::max(highest, job.priority);
  const absl::Time first = trace_.front().arrives, last = trace_.back().arrives;
  double used_s = 0;
  for (size_t i = 0; i < trace_.size(); ++i) {
    const TraceJob& job = trace_[i];
    const Run& run = runs_[i];
    ++figures.jobs;
    figures.done += run.done;
    const bool bounded = job.deadline != absl::InfiniteFuture();
    figures.with_deadline += bounded;
    figures.held += bounded && run.done;
    auto& [sum, count] = by_owner[job.owner];
    ++count;
    if (!run.done) continue;
    const double took_s = absl::ToDoubleSeconds(run.finished - job.arrives);
    const double slowdown = std::max(1.0, took_s / std::max(10.0, absl::ToDoubleSeconds(job.runs)));
    slowdowns.push_back(slowdown);
    if (job.priority == highest) high.push_back(slowdown);
    sum += 1 / slowdown;
    if (run.finished <= last) used_s += job.slots * absl::ToDoubleSeconds(job.runs);
  }
  for (const double slowdown : slowdowns) figures.mean_slowdown += slowdown;
  if (!slowdowns.empty()) figures.mean_slowdown /= static_cast<double>(slowdowns.size());
  figures.p95_slowdown = Percentile(slowdowns, 0.95);
  figures.p95_slowdown_high = Percentile(high, 0.95);
  figures.utilisation = used_s / (slots_ * absl::ToDoubleSeconds(last - first));
  double all = 0, squares = 0;
  for (const auto& [owner, served] : by_owner) {
    const double mean = served.first / served.second;
    all += mean;
    squares += mean * mean;
  }
  if (squares > 0) figures.fairness = all * all / (static_cast<double>(by_owner.size()) * squares);
  return figures;
}

}  // namespace

const char* Name(Policy policy) {
  switch (policy) {
    case Policy::kFifo:
      return "FIFO";
    case Policy::kEasy:
      return "EASY backfill";
    case Policy::kTraind:
      return "traind";
    case Policy::kTraindNoPreempt:
      return "traind, no preemption";
  }
  return "";
}

Figures Replay(const std::vector<TraceJob>& trace, const Cluster& cluster, Policy policy) {
  return Simulator(trace, cluster, policy).Go();
}

}  // namespace traind
