// Checks of folds that make room for others: for whom, how often, and that they do.
#include <absl/strings/match.h>

#include <algorithm>

#include "tests/simulation/history_checker.h"

namespace traind::simulation {
namespace {

// Folds that end soon are waited for, by estimates that may be wrong for an epoch.
constexpr int64_t kEstimates = 20'000'000;
// From a decision to its commit.
constexpr int64_t kCommitSlack = 100'000;
// From the end of a grace until a killed Rank is gone.
constexpr int64_t kKillSlack = 1'000'000;

bool Trains(const nlohmann::json& r) {
  return std::any_of(r["tasks"].begin() + 1, r["tasks"].end(),
                     [](const nlohmann::json& task) { return task[0] == "RUNNING"; });
}

// Whether a Decision about making room, which is no older, has such a part.
bool HasDecided(const nlohmann::json& r, size_t part, const std::string& text, int64_t since) {
  return std::any_of(r["decisions"].begin(), r["decisions"].end(), [&](const nlohmann::json& d) {
    return d[0] == "preempt" && d[4] >= since &&
           absl::StrContains(d[part].get<std::string>(), text);
  });
}

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
    const auto before = job.preempted_at.find(task);
    constexpr int64_t kSlack = 100'000;
    const int64_t clock = t + offset_;
    if (before != job.preempted_at.end() &&
        clock - before->second < preempt_pause_ - kSlack - lag_) {
      Violation("job ", id, ": task ", task, " made room twice within ", clock - before->second,
                " us");
    }
    job.preempted_at[task] = clock;
    CheckMadeRoom(r, attempt);
    const json& counted = job.last["starts"][task];
    if (r["starts"][task][1] != counted[1] || r["starts"][task][2] != counted[2]) {
      Violation("job ", id, ": a fold that made room counts as one that failed");
    }
  }
}

// A fold is told to make room: for a Job of a higher class that says so, has nothing itself and can
// use the slots; and not before it has run for a while.
void Checker::ReadToldToGo(const json& r) {
  const int64_t attempt = r["attempt"];
  const std::string by = r["by"];
  const auto [going, first] = going_.emplace(attempt, Going{{}, r["t"]});
  if (!going->second.by.insert(by).second) return;  // it was told before
  counts_["preempted"] += first;
  const auto rank = ranks_.find(attempt);
  if (rank != ranks_.end() && rank->second.to >= 0) going->second.gone_at = r["t"];  // just before
  const std::string id = job_of_[attempt];
  const json& victim = jobs_[id].last;
  const JobSeen& other = jobs_[by];
  if (victim.is_null() || other.last.is_null()) {
    return Violation("attempt ", attempt, " makes room, and its job or the other is not known");
  }
  const std::string whom = absl::StrCat("attempt ", attempt, " of job ", id);
  if (victim["priority"] >= other.last["priority"]) {
    Violation(whom, " makes room for job ", by, ", whose priority is no higher");
  }
  const int64_t core = r["core"];
  if (!HasDecided(other.last, 2, absl::StrCat(" of ", id, " (priority "), core - kCommitSlack)) {
    Violation(whom, " makes room for job ", by, ", which has decided nothing about it");
  }
  if (Trains(other.last)) Violation(whom, " makes room for job ", by, ", which trains already");
  const Placement& placement = placements_[attempt];
  if (core - placement.core < preempt_least_run_ - kCommitSlack - lag_) {
    Violation(whom, " makes room after only ", core - placement.core, " us");
  }
  const int wants = other.last["wants"];
  if (owner_slots_ > 0 && wants == 1 && SlotsOf(other.last["owner"]) >= owner_slots_) {
    Violation(whom, " makes room for job ", by, ", whose owner may have no more");
  }
  const bool suits =
      std::any_of(placement.parts.begin(), placement.parts.end(),
                  [&](const auto& part) { return AnySuits(other, part.first, part.second); });
  if (!suits) Violation(whom, " makes room for job ", by, ", which its slots do not suit");
}

// An Attempt has ended because it made room.
void Checker::CheckMadeRoom(const json& r, const json& attempt) {
  const auto going = going_.find(attempt[0]);
  if (going == going_.end()) {
    return Violation("attempt ", attempt[0].dump(), " has made room and was never told to go");
  }
  const auto task = attempt[1].get<size_t>();
  const json& now = r["tasks"][task];
  if (now[5] != 0 || now[0] != "PENDING" || r["state"] == "PAUSED") return;
  went_[{r["job"], task}] = attempt[0];
  const std::set<std::string>& by = going->second.by;
  const int64_t since = r["core"].get<int64_t>() - kCommitSlack;
  const bool decided = std::any_of(by.begin(), by.end(), [&](const std::string& other) {
    return HasDecided(r, 1, "preempted by " + other, since);
  });
  if (decided) return;
  Violation("job ", r["job"].get<std::string>(), ": no decision tells that fold ", task - 1,
            " made room for job ", *by.begin());
}

// The Ranks of an Attempt have ended.
void Checker::ReadGone(const json& r) {
  const auto going = going_.find(r["attempt"]);
  if (going == going_.end()) return;
  going->second.gone_at = r["t"];
  going->second.epochs = r.value("epochs", -1.0);
}

// Without faults an Attempt that was told to make room goes within its grace, or is killed.
void Checker::CheckGone() {
  if (faults_) return;
  for (const auto& [attempt, going] : going_) {
    const auto rank = ranks_.find(attempt);
    if (rank == ranks_.end()) continue;
    const int64_t took = (going.gone_at < 0 ? end_ : going.gone_at) - going.told_at;
    if (took > preempt_grace_) ++counts_["preempted_and_killed"];
    if (took <= preempt_grace_ + kKillSlack) continue;
    Violation("attempt ", attempt, " went ", took, " us after it was told to, and had ",
              preempt_grace_, " us");
  }
}

// What a fold had when it made room is there when it goes on, unless it was killed.
void Checker::CheckWentOn(const json& r) {
  const auto task = task_of_.find(r["attempt"]);
  if (task == task_of_.end()) return;
  const auto went = went_.find({job_of_[r["attempt"]], task->second});
  if (went == went_.end() || went->second >= r["attempt"]) return;
  const Going& going = going_[went->second];
  // Its grace counts from the decision, which is told once it is stored.
  const int64_t kill_from = going.told_at - kCommitSlack + preempt_grace_;
  const bool killed = going.gone_at < 0 || going.gone_at > kill_from;
  went_.erase(went);
  ++counts_["preempted_and_back"];
  if (faults_ || killed || r["epochs"].get<double>() >= going.epochs) return;
  Violation("attempt ", r["attempt"].get<int64_t>(), " goes on from ", r["epochs"].dump(),
            " epochs, and its fold made room with ", going.epochs);
}

// Without faults no fold that has all the time goes on while a Job with a deadline and of a higher
// priority has none at all, for longer than it takes to notice and to go.
void Checker::CheckStarved() {
  if (faults_ || preempted_by_ < 0 || owner_slots_ > 0) return;
  const int64_t most = preempted_by_ + kEstimates;
  for (const auto& [id, job] : jobs_) {
    if (job.last.is_null() || IsAsked(job)) continue;
    if (job.last["deadline"] < 0 || job.last["wants"] > 1) continue;
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
