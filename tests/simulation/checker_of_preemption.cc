// Checks of folds that make room for others: for whom, how often, and that they do.
#include <algorithm>

#include "tests/simulation/history_checker.h"

namespace traind::simulation {
namespace {

// Folds that end soon are waited for, by estimates that may be wrong for an epoch.
constexpr int64_t kEstimates = 20'000'000;

// A first fold waits, and nothing of the Job runs.
bool Starves(const nlohmann::json& r) {
  const std::string state = r["state"];
  if (Terminal(state) || state == "PAUSED" || state == "FINALIZING") return false;
  bool waits = false;
  for (size_t i = 1; i < r["tasks"].size(); ++i) {
    const nlohmann::json& task = r["tasks"][i];
    if (task[0] == "RUNNING") return false;
    waits |= task[0] == "PENDING" && task[5] == 0;
  }
  return waits && r["tasks"][0][0] == "DONE";
}

}  // namespace

// Whether a Job of a higher priority is there.
bool Checker::MayHaveMadeRoom(const json& r) const {
  return std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& known) {
    const json& other = known.second.last;
    // One that has ended in the meantime may be the one for which it went.
    return !other.is_null() && other["priority"] > r["priority"];
  });
}

void Checker::ReadPreemption(const json& r, JobSeen& job) {
  const std::string id = r["job"];
  const int64_t t = r["t"];
  const bool starves = Starves(r);
  if (starves && job.starved_since < 0) job.starved_since = t;
  if (!starves && job.starved_since >= 0) {
    job.starved.emplace_back(job.starved_since, t);
    job.starved_since = -1;
  }
  std::map<int64_t, bool> ran;
  if (!job.last.is_null()) {
    for (const json& attempt : job.last["attempts"]) ran[attempt[0]] = attempt[2];
  }
  for (const json& attempt : r["attempts"]) {
    if (attempt[3] != "PREEMPTED" || !ran[attempt[0]]) continue;
    const auto task = attempt[1].get<size_t>();
    if (preempted_by_ < 0) Violation("job ", id, ": a fold made room, which is turned off");
    if (!truths_[r["request"]]["changed"] && !MayHaveMadeRoom(r)) {
      Violation("job ", id, ": a fold made room for nobody of a higher priority");
    }
    const auto before = job.preempted_at.find(task);
    constexpr int64_t kSlack = 100'000;
    const int64_t clock = t + offset_;
    if (before != job.preempted_at.end() &&
        clock - before->second < preempt_pause_ - kSlack - lag_) {
      Violation("job ", id, ": task ", task, " made room twice within ", clock - before->second,
                " us");
    }
    job.preempted_at[task] = clock;
    const json& counted = job.last["starts"][task];
    if (r["starts"][task][1] != counted[1] || r["starts"][task][2] != counted[2]) {
      Violation("job ", id, ": a fold that made room counts as one that failed");
    }
  }
}

// Without faults no fold that has all the time goes on while a Job with a deadline and of a higher
// priority has none at all, for longer than it takes to notice and to go.
void Checker::CheckStarved() {
  if (faults_ || preempted_by_ < 0) return;
  const int64_t most = preempted_by_ + kEstimates;
  for (const auto& [id, job] : jobs_) {
    if (job.last.is_null() || job.last["deadline"] < 0 || job.last["wants"] > 1) continue;
    const int priority = job.last["priority"];
    // Those of a higher class get what is freed first.
    const bool highest = std::none_of(jobs_.begin(), jobs_.end(), [&](const auto& other) {
      return !other.second.last.is_null() && other.second.last["priority"] > priority;
    });
    if (!highest || truths_[job.last["request"]]["interrupted"]) continue;
    for (const auto& [from, to] : job.starved) {
      for (const auto& [attempt, rank] : ranks_) {
        if (!AnySuits(job, rank.worker, rank.slots)) continue;
        const JobSeen& holder = jobs_[rank.job];
        if (holder.last.is_null() || holder.last["deadline"] >= 0) continue;
        if (holder.last["priority"] >= priority) continue;
        if (truths_[holder.last["request"]]["interrupted"] || !holder.preempted_at.empty())
          continue;
        const int64_t end = rank.to < 0 ? end_ : rank.to;
        const int64_t together = std::min(to, end) - std::max(from, rank.from);
        if (together <= most) continue;
        Violation("job ", id, " had nothing for ", together, " us while attempt ", attempt,
                  " of job ", rank.job, ", which has a lower priority, ran");
      }
    }
  }
}

}  // namespace traind::simulation
