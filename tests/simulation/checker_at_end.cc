// Checks the end of a history: of each Job, and of the slots.
#include <algorithm>

#include "tests/simulation/history_checker.h"

namespace traind::simulation {
namespace {

constexpr int64_t kSecond = 1'000'000;
// From a decision to its commit.
constexpr int64_t kCommitSlack = 60'000;
// From a deadline to a Worker's kill: what a command was on its way.
constexpr int64_t kKillSlack = 100'000;

// The least share of its time that a Job with further trials uses, where its window is
// longer than so many seconds. That share of the window at its end is held back at most.
constexpr double kLeastUsed = 0.9, kLeastWindowS = 10, kReserveShare = 0.15;

}  // namespace

void Checker::CheckAfterAtEnd(const std::string& id, const JobSeen& job) {
  const json& truth = truths_.at(job.last["request"]);
  const bool needs_success = !truth["any_end"];
  for (const auto& [other, until] : job.waited_until) {
    const JobSeen& before = jobs_[other];
    const std::string state = before.last["state"];
    if (before.terminal_at < 0 || before.terminal_at > until) {
      Violation("job ", id, " did not wait for the end of job ", other);
    } else if (needs_success && state != "SUCCEEDED") {
      Violation("job ", id, " ran after job ", other, ", which is ", state);
    }
  }
  if (!Terminal(job.last["state"])) {
    for (const json& other : job.last["after"]) {
      if (jobs_[other].terminal_at >= 0) {
        Violation("job ", id, " still waits for job ", other.get<std::string>());
      }
    }
  }
  if (job.last["reason"] != "AFTER_FAILED") return;
  const auto failed = [this, &job](const json& request) {
    const auto known = by_request_.find(request.get<std::string>());
    if (known == by_request_.end()) return false;
    const JobSeen& before = jobs_[known->second];
    return before.terminal_at >= 0 && before.terminal_at <= job.terminal_at &&
           before.last["state"] != "SUCCEEDED";
  };
  const json& after = truth["after"];
  if (!needs_success || std::none_of(after.begin(), after.end(), failed)) {
    Violation("job ", id, " was cancelled for a failure that was none");
  }
}

int64_t Checker::BlockedUntil(int64_t t) const {
  for (const auto& [from, to] : blocked_) {
    if (from - kSecond <= t && t <= to + 2 * kSecond) {
      return to == INT64_MAX ? to : BlockedUntil(to + 2 * kSecond + 1);
    }
  }
  return t;
}

void Checker::CheckDeadline(const std::string& id, const JobSeen& job) {
  const int64_t due = job.true_deadline + lag_;
  const int64_t allowed = BlockedUntil(due);
  if (allowed == INT64_MAX || allowed > end_) return;
  const int64_t late = job.terminal_at - (allowed + kCommitSlack);
  if (job.terminal_at < 0) {
    Violation("job ", id, " is ", job.last["state"].get<std::string>(), " after its deadline");
  } else if (late > 0) {
    Violation("job ", id, " ended ", late, " us too late");
  }
}

void Checker::CheckJobAtEnd(const std::string& id, const JobSeen& job) {
  if (job.last.is_null()) {
    if (job.acked_at >= 0) Violation("job ", id, " was acknowledged and is lost");
    return;
  }
  const json& last = job.last;
  const std::string state = last["state"];
  if (IsAsked(job)) return CheckAskedAtEnd(id, job);
  if (truths_.count(last["request"]) == 0) {
    return Violation("job ", id, " was never asked for");
  }
  if (job.true_deadline >= 0) {
    CheckDeadline(id, job);
  } else if (!Terminal(state) && BlockedUntil(end_) == end_ &&
             truths_[last["request"]]["placeable"]) {
    Violation("job ", id, " without a deadline is still ", state);
  }
  const json& truth = truths_.at(last["request"]);
  const bool has_test = last["has_test"];
  const bool on_time = job.true_deadline < 0 || job.published_at <= job.true_deadline - 300'000;
  if (state == "FAILED" && has_test && job.published_at >= 0 && on_time &&
      job.published_at < job.terminal_at) {
    Violation("job ", id, " FAILED though a prediction stands");
  }
  if (state == "SUCCEEDED" && has_test && last["number"] == 0) {
    Violation("job ", id, " SUCCEEDED without a prediction");
  }
  if (Terminal(state) && has_test && job.standing >= 0 && last["number"] != job.standing) {
    Violation("job ", id, " has prediction ", last["number"].dump(), ", and prediction ",
              job.standing, " stands");
  }
  if (Terminal(state) && last["number"] > job.number_on_disk) {
    Violation("job ", id, " names a prediction that is not on disk");
  }
  CheckAfterAtEnd(id, job);
  CheckUnmet(id, job);
  if (faults_ || truth["bad_data"] || state == "CANCELLED") return;
  // A deadline by the clock may come before the Jobs have ended that it waits for.
  if (!truth["after"].empty() && truth["by_clock"]) return;
  // Nothing went wrong: the promise in full.
  CheckIdle(id, job);
  CheckUsed(id, job);
  const double window = truth["window_s"];
  const bool floor_fits =
      !truth["changed"] && window > 1.0 && window > 3 * truth["floor_s"].get<double>() + 0.6;
  const bool ends = job.true_deadline >= 0 || truth["placeable"];
  if (has_test && floor_fits && ends && state != "SUCCEEDED") {
    Violation("job ", id, " ended ", state,
              " without any fault: ", last["reason"].get<std::string>());
  }
  for (const json& attempt : last["attempts"]) {
    // Where its Rank is told to stop at its first steps nobody has timed any: then the share holds
    // a step and a prediction.
    const bool fits =
        window > 2.0 && 0.06 * window > truth["predict_s"] &&
        0.15 * window > truth["predict_s"].get<double>() + truth["step_s"].get<double>() &&
        truth["probe_error"] > 0.9;
    // Nothing is lost with a model of a further trial, whose steps may be long.
    const bool further = last["spec_trials"] > 1 && last["tasks"][attempt[1].get<size_t>()][5] != 0;
    // Nor with one that had not begun to train when it was told to stop.
    const auto rank = ranks_.find(attempt[0].get<int64_t>());
    if (rank != ranks_.end() && !rank->second.stepped) continue;
    if (fits && !further && !truth["changed"] && attempt[1] > 0 && attempt[3] == "DEADLINE") {
      Violation("job ", id, ": without any fault attempt ", attempt[0].dump(),
                " was cut off at the deadline");
    }
  }
  const bool model_fits = truth["placeable"] && truth["alone"] && window > 2.0 &&
                          0.25 * window > truth["first_model_s"].get<double>();
  if (model_fits && !truth["interrupted"] && state == "SUCCEEDED" && has_test &&
      last["quality"] < 2) {
    Violation("job ", id, " has no fold model in its prediction, with ", window,
              " s of time and no fault: ", last["reason"].get<std::string>());
  }
}

// Time in which one more model would have fitted twice was not left unused.
void Checker::CheckIdle(const std::string& id, const JobSeen& job) {
  const json& last = job.last;
  const json& truth = truths_.at(last["request"]);
  if (last["quality"] < 2 || !truth["alone"] || truth["fixed"]) return;
  if (truth["interrupted"] || truth["reuses"]) return;
  const bool all = last["plan"][4] == last["spec_folds"].get<int>() * last["spec_seeds"].get<int>();
  const double left_s = static_cast<double>(job.true_deadline - job.terminal_at) / kSecond;
  const double model_s = truth["whole_model_s"];
  if (last["quality"] == 2 && job.true_deadline >= 0 && left_s > 2 * model_s + 2 &&
      left_s > 0.1 * truth["window_s"].get<double>()) {
    Violation("job ", id, " ended DEGRADED with ", left_s, " s of ", truth["window_s"].dump(),
              " s left, and a model takes ", model_s, " s");
  }
  if (last["quality"] == 2) return;
  if (!all && job.true_deadline >= 0 && left_s > 2 * truth["whole_model_s"].get<double>() + 2) {
    Violation("job ", id, " ended with ", left_s, " s left and ", last["plan"][4].dump(),
              " models, of which one takes ", truth["whole_model_s"].dump(), " s");
  }
}

// A Job with further trials uses nine tenths of the time in which its slots could train, unless a
// Decision says that no more is expected to gain, or to fit, or that no client proposes any.
void Checker::CheckUsed(const std::string& id, const JobSeen& job) {
  const json& last = job.last;
  const json& truth = truths_.at(last["request"]);
  if (last["state"] != "SUCCEEDED" || last["spec_trials"] == 1 || job.true_deadline < 0) return;
  if (!truth["alone"] || truth["fixed"] || truth["interrupted"] || truth["reuses"]) return;
  if (truth["window_s"] < kLeastWindowS || !truth["placeable"]) return;
  for (const json& d : last["decisions"]) {
    if (d[5] == true) return;
  }
  const auto gangs = truth["gangs"].get<int64_t>();
  const int64_t accepted = last["accepted"], length = job.true_deadline - accepted;
  const int64_t end = job.true_deadline - static_cast<int64_t>(kReserveShare * length);
  int64_t used = 0;
  for (const auto& [attempt, rank] : ranks_) {
    if (rank.job != id) continue;
    const int64_t took = std::max<int64_t>(0, std::min(rank.to, end) - rank.from);
    used += rank.slots.empty() ? gangs * took : took;
  }
  const double share = static_cast<double>(used) / static_cast<double>(gangs * (end - accepted));
  if (share < kLeastUsed) {
    Violation("job ", id, " used ", share, " of its time, and no decision says why");
  }
}

void Checker::CheckRanks() {
  std::map<std::pair<std::string, int>, std::vector<std::pair<int64_t, int64_t>>> used;
  std::vector<std::pair<int64_t, RankSeen>> all(ranks_.begin(), ranks_.end());
  for (const auto& [place, part] : parts_) all.emplace_back(place.first, part);
  for (const auto& [attempt, rank] : all) {
    const int64_t to = rank.to < 0 ? end_ : rank.to;
    for (int slot : rank.slots) used[{rank.worker, slot}].emplace_back(rank.from, to);
    const auto job = jobs_.find(rank.job);
    if (job == jobs_.end() || job->second.true_deadline < 0) continue;
    const int64_t over = to - (job->second.last_deadline + lag_ + kKillSlack);
    if (over > 0) Violation("attempt ", attempt, " ran ", over, " us past its job's deadline");
  }
  for (auto& [slot, spans] : used) {
    std::sort(spans.begin(), spans.end());
    for (size_t i = 1; i < spans.size(); ++i) {
      if (spans[i].first < spans[i - 1].second) {
        Violation("two attempts at once on slot ", slot.second, " of ", slot.first);
      }
    }
  }
}

void Checker::CheckAlone() {
  for (const SavedFold& saved : saved_) CheckAlone(saved);
}

// Where traind was away from before a fold was saved until after the deadline, its Worker has
// published the fold in time.
void Checker::CheckAlone(const SavedFold& saved) {
  constexpr int64_t kTimeToPublish = 3 * kSecond;
  const auto found = jobs_.find(saved.job);
  if (found == jobs_.end() || found->second.last.is_null()) return;
  const JobSeen& job = found->second;
  const int64_t due = job.true_deadline;
  if (due < 0 || saved.at > due - kTimeToPublish || !job.last["has_test"]) return;
  if (job.terminal_at >= 0 && job.terminal_at <= due) return;
  const bool alone = std::any_of(away_.begin(), away_.end(), [&](const auto& away) {
    return away.first <= saved.at - kSecond && away.second >= due;
  });
  const auto meanwhile = [&](int64_t t) { return t >= saved.at - 5 * kSecond && t <= due; };
  const std::vector<int64_t>& ended = worker_ended_[saved.worker];
  if (!alone || full_ || std::any_of(ended.begin(), ended.end(), meanwhile) ||
      std::any_of(disk_faults_.begin(), disk_faults_.end(), meanwhile)) {
    return;
  }
  for (const StoodFrom& stood : stood_[saved.job]) {
    if (stood.at <= due && stood.folds.count(saved.fold) > 0) return;
  }
  Violation("job ", saved.job, ": its Worker had fold ", saved.fold,
            " in time and has not published it while traind was away");
}

}  // namespace traind::simulation
