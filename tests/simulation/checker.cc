#include "tests/simulation/checker.h"

#include <absl/strings/match.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/simulation/history_checker.h"

namespace traind::simulation {
namespace {

using nlohmann::json;

bool LegalStep(const std::string& from, const std::string& to) {
  if (from == to) return !Terminal(from);
  static const std::map<std::string, std::set<std::string>> steps = {
      {"", {"QUEUED", "PLANNING", "FINALIZING", "FAILED", "PAUSED", "CANCELLED"}},
      {"QUEUED",
       {"PLANNING", "RUNNING", "FINALIZING", "SUCCEEDED", "FAILED", "CANCELLED", "PAUSED"}},
      {"PLANNING",
       {"QUEUED", "RUNNING", "FINALIZING", "SUCCEEDED", "FAILED", "CANCELLED", "PAUSED"}},
      {"RUNNING", {"QUEUED", "FINALIZING", "SUCCEEDED", "FAILED", "CANCELLED", "PAUSED"}},
      {"PAUSED",
       {"QUEUED", "PLANNING", "RUNNING", "FINALIZING", "SUCCEEDED", "FAILED", "CANCELLED"}},
      {"FINALIZING", {"SUCCEEDED", "FAILED", "CANCELLED"}},
  };
  const auto it = steps.find(from);
  return it != steps.end() && it->second.count(to) > 0;
}

}  // namespace

std::vector<std::string> Checker::Run() {
  for (const json& record : history_) Read(record);
  end_ = history_.empty() ? 0 : history_.back()["t"].get<int64_t>();
  if (blocked_since_ >= 0) blocked_.emplace_back(blocked_since_, INT64_MAX);
  for (const auto& [id, job] : jobs_) CheckJobAtEnd(id, job);
  CheckRanks();
  CheckAlone();
  CheckRows();
  CheckStarved();
  CheckGone();
  CheckWaits();
  return std::move(violations_);
}

void Checker::Read(const json& r) {
  const std::string kind = r["kind"];
  const int64_t t = r["t"];
  if (ReadAsks(r)) return;
  const auto block = [this, t](bool now_blocked) {
    if (now_blocked && blocked_since_ < 0) blocked_since_ = t;
    if (!now_blocked && blocked_since_ >= 0) {
      blocked_.emplace_back(blocked_since_, t);
      blocked_since_ = -1;
    }
  };
  if (kind == "seed") {
    faults_ = r["faults"];
    standalone_ = r["standalone"];
    preempted_by_ = r["preempted_by"];
    preempt_pause_ = r["preempt_pause"];
    preempt_least_run_ = r["preempt_least_run"];
    preempt_grace_ = r["preempt_grace"];
    owner_slots_ = r.value("owner_slots", 0);
  } else if (kind == "coordinator_start") {
    const int64_t offset = r["offset"];
    // A wall clock put back meanwhile may cost what nobody wrote down, no more.
    if (started_ && offset < offset_) lag_ += std::min(offset_ - offset, t - committed_at_);
    offset_ = offset;
    started_ = true;
    if (down_ && !away_.empty()) away_.back().second = t;
    down_ = false;
    block(full_);
  } else if (kind == "coordinator_end") {
    down_ = true;
    away_.emplace_back(t, INT64_MAX);
    block(true);
  } else if (kind == "disk_full") {
    full_ = true;
    disk_faults_.push_back(t);
    block(true);
  } else if (kind == "disk_ok") {
    full_ = false;
    disk_faults_.push_back(t);
    block(down_);
  } else if (kind == "truth") {
    truths_[r["request"]] = r;
  } else if (kind == "machine") {
    ReadMachine(r);
  } else if (kind == "placements") {
    ReadPlacements(r);
  } else if (kind == "preempt_told") {
    ReadToldToGo(r);
  } else if (kind == "told") {
    ReadTold(r);
  } else if (kind == "submit_ack") {
    const std::string id = r["job"], request = r["request"];
    auto [known, added] = by_request_.emplace(request, id);
    if (!added && known->second != id) {
      Violation("request ", request, " made two jobs: ", known->second, " and ", id);
    }
    JobSeen& job = jobs_[id];
    if (job.acked_at < 0) job.acked_at = t;
    if (job.last.is_null()) Violation("job ", id, " was acknowledged before it was stored");
  } else if (kind == "conflict_ack") {
    if (r["status"] != "ALREADY_EXISTS") {
      Violation("another spec under request ", r["request"].get<std::string>(), " was answered ",
                r["status"].get<std::string>());
    }
  } else if (kind == "job") {
    ReadJob(r);
  } else if (kind == "rank_start") {
    RankSeen rank;
    rank.job = r["job"];
    rank.worker = r["worker"];
    rank.slots = r["slots"].get<std::vector<int>>();
    rank.from = t;
    rank.world_size = r["world_size"];
    if (!ranks_.emplace(r["attempt"], rank).second) {
      Violation("attempt ", r["attempt"].get<int64_t>(), " was started twice");
    }
    if (attempts_.count(r["attempt"]) == 0) {
      Violation("attempt ", r["attempt"].get<int64_t>(), " runs but was never stored");
    }
    CheckStart(r);
    CheckPlace(r);
    CheckPredicting(r);
  } else if (kind == "part_start") {
    const std::pair<int64_t, std::string> place(r["attempt"], r["worker"]);
    RankSeen part;
    part.job = r["job"];
    part.worker = r["worker"];
    part.slots = r["slots"].get<std::vector<int>>();
    part.from = t;
    const auto lead = ranks_.find(r["attempt"]);
    const bool twice = !parts_.emplace(place, part).second ||
                       (lead != ranks_.end() && lead->second.worker == part.worker);
    if (twice) {
      Violation("attempt ", r["attempt"].get<int64_t>(), " has two parts on ", part.worker);
    }
    CheckStart(r);
    CheckPlace(r);
  } else if (kind == "worker_mode") {
    if (r["mode"] == 0) {
      closed_.erase(r["worker"]);
    } else {
      closed_.insert(r["worker"]);
    }
  } else if (kind == "part_end") {
    const auto it = parts_.find({r["attempt"], r["worker"]});
    if (it != parts_.end()) it->second.to = t;
    ReadPartEnd(r);
  } else if (kind == "gang_begin") {
    CheckGang(r);
  } else if (kind == "rank_epochs") {
    const auto it = ranks_.find(r["attempt"]);
    if (it != ranks_.end()) it->second.epochs = r["epochs"];
    CheckWentOn(r);
  } else if (kind == "rank_end") {
    const auto it = ranks_.find(r["attempt"]);
    if (it != ranks_.end()) {
      it->second.to = t;
      if (it->second.epochs >= 0) it->second.epochs = r.value("epochs", -1.0);
      it->second.stepped = r.value("stepped", true);
    }
    ReadPartEnd(r);
    ReadGone(r);
    predicts_[r["worker"]].erase(r["attempt"].get<int64_t>());
  } else if (kind == "short_epoch") {
    shortened_.insert(r["attempt"].get<int64_t>());
  } else if (kind == "acked_fold") {
    ReadAckedFold(r["attempt"]);
  } else if (kind == "floor") {
    JobSeen& job = jobs_[r["job"]];
    if (job.floor_at < 0) job.floor_at = t;
  } else if (kind == "published") {
    JobSeen& job = jobs_[r["job"]];
    if (job.published_at < 0) job.published_at = t;
    if (r["number"] <= job.number_on_disk) Violation("prediction numbers went back");
    // FULL may turn out to be DEGRADED where a Worker did not know of a cut.
    if (r["quality"] < std::min(job.quality_on_disk, 2)) {
      Violation("job ", r["job"].get<std::string>(), ": the standing prediction got worse");
    }
    job.number_on_disk = r["number"];
    job.quality_on_disk = r["quality"];
    ReadContent(r);
    stood_[r["job"]].push_back({t, r["folds"].get<std::set<int>>()});
  } else if (kind == "current_lost" || kind == "taken_back") {
    // By a loss of power before it was synced; because the Job was over.
    JobSeen& job = jobs_[r["job"]];
    job.number_on_disk = r["number"];
    job.quality_on_disk = r["quality"];
    if (job.number_on_disk == 0) job.published_at = -1;
  } else if (kind == "standing") {
    jobs_[r["job"]].standing = r["number"];
  } else if (kind == "checkpoint_lost") {
    Violation("attempt ", r["attempt"].get<int64_t>(), ": the checkpoint ",
              r["manifest"].get<std::string>(), " was told of and is lost");
  } else if (kind == "power_lost") {
    disk_faults_.push_back(t);
  } else if (kind == "worker_end") {
    worker_ended_[r["worker"]].push_back(t);
    questions_.erase(r["worker"]);
  } else if (kind == "fold_saved") {
    saved_.push_back({t, r["job"], r["worker"], r["fold"]});
  } else if (kind == "commit_refused") {
    Violation("the store refused a commit: ", r["error"].get<std::string>());
  } else if (kind == "worker_spins") {
    Violation("the loop of ", r["worker"].get<std::string>(), " turns without end");
  } else if (kind == "unacknowledged") {
    Violation("attempt ", r["attempt"].get<int64_t>(), ": fact ", r["sequence"].get<int64_t>(),
              " was never acknowledged");
  }
}

void Checker::ReadJob(const json& r) {
  committed_at_ = r["t"];
  const std::string id = r["job"];
  JobSeen& job = jobs_[id];
  const std::string before = job.last.is_null() ? "" : job.last["state"].get<std::string>();
  const std::string state = r["state"];
  if (Terminal(before)) Violation("job ", id, " changed after it was ", before);
  // A Job that trains nothing waits for no slot, and has no last Prediction to make.
  const bool at_once = r["models_from"] != "" && ((before.empty() && state == "RUNNING") ||
                                                  (before == "RUNNING" && state == "SUCCEEDED"));
  if (!LegalStep(before, state) && !at_once)
    Violation("job ", id, " went from ", before, " to ", state);
  if (!job.last.is_null()) {
    if (r["version"] <= job.last["version"]) Violation("job ", id, ": its version did not grow");
    if (r["deadline"] != job.last["deadline"]) {
      if (r["decisions"].size() == job.last["decisions"].size() || r["deadline"] < 0) {
        Violation("job ", id, ": its deadline moved and nobody asked");
      }
      SetDeadline(r, job);
    }
    if (r["accepted"] != job.last["accepted"]) Violation("job ", id, ": its acceptance moved");
    if (r["number"] < job.last["number"]) Violation("job ", id, ": its prediction went back");
    if (r.contains("plan") && job.last.contains("plan")) {
      if (r["plan"][1] > r["spec_folds"]) Violation("job ", id, ": more folds than asked for");
      if (r["plan"][2] > r["spec_epochs"]) Violation("job ", id, ": more epochs than asked for");
      if (r["plan"][3] < 1 && (!r["spec_subsample"] || r["plan"][2] != 1)) {
        Violation("job ", id, ": a share of the rows was not allowed, or epochs were left");
      }
      if (r["plan"] != job.last["plan"] && r["plan"][0] <= job.last["plan"][0]) {
        Violation("job ", id, ": a revision of its plan changed");
      }
      if (r["plan"][4] > r["spec_folds"].get<int>() * r["spec_seeds"].get<int>()) {
        Violation("job ", id, ": more models than asked for");
      }
      // Without a deadline all models are trained, and nobody decides that; nor what becomes
      // of those that earlier Jobs have trained, or that cannot be trained any more.
      const bool changed = r["plan"][1] != job.last["plan"][1] ||
                           r["plan"][2] != job.last["plan"][2] ||
                           r["plan"][3] != job.last["plan"][3] ||
                           (r["plan"][4] > job.last["plan"][4] && r["deadline"] >= 0 &&
                            !truths_[r["request"]]["reuses"]);
      if (changed && r["decisions"].size() == job.last["decisions"].size()) {
        Violation("job ", id, ": its plan changed without a decision");
      }
    }
  } else if (r["deadline"] >= 0) {
    SetDeadline(r, job);
  }
  ReadAskedJob(r, job);
  CheckTasks(r, job.last.is_null() ? nullptr : &job.last);
  CheckSettings(r, job.last);
  CheckAfter(r, job);
  CheckProgressTold(r);
  ReadPreemption(r, job);
  NoteUnmet(r, job);
  NoteWaits(r, job);
  if (Terminal(state)) {
    job.terminal_at = r["t"];
    if (r["reason"] == "NONE") Violation("job ", id, " ended without a reason");
    if (r["deadline"] >= 0 && r["finished"] > r["deadline"]) {
      Violation("job ", id, " finished after its deadline");
    }
    for (const json& attempt : r["attempts"]) {
      if (attempt[2]) Violation("job ", id, " ended with a live attempt ", attempt[0].dump());
    }
    // Each Attempt that had to make room is told of; the rest is what traind has chosen.
    const auto chosen =
        std::count_if(r["decisions"].begin(), r["decisions"].end(),
                      [](const json& decision) { return decision[0] != "preempt"; });
    if (chosen > 100) {
      Violation("job ", id, " has ", chosen, " decisions: who shall read them?");
    }
    for (const json& d : r["decisions"]) {
      for (const json& part : d) {
        if (part == "") Violation("job ", id, ": a decision lacks something: ", d.dump());
      }
    }
    if (r["quality"] == 3 && r["complete"] < r["spec_folds"]) {
      Violation("job ", id, " is FULL with ", r["complete"].dump(), " complete folds");
    }
    for (const json& member : r["members"]) {
      if (r["quality"] == 3 && shortened_.count(member[1].get<int64_t>()) > 0) {
        Violation("job ", id, " is FULL with a fold whose epochs were shortened");
      }
    }
    if (r["quality"] == 1 && !r["members"].empty() && r["models_from"] == "") {
      Violation("job ", id, " is FLOOR with the folds ", r["members"].dump());
    }
    CheckAnswer(r);
  }
  job.last = r;
}

// The facts of an ended Job fit together.
void Checker::CheckAnswer(const json& r) {
  const std::string id = r["job"];
  for (const json& fold : r["members"]) {
    const json& task = r["tasks"][fold[0].get<size_t>()];
    if (task[1] != fold[1]) continue;  // of an Attempt that had lost its Lease
    const std::string state = task[0];
    if (state != "DONE" && state != "PARTIAL") {
      Violation("job ", id, ": the model of ", fold.dump(), " answers and is ", state);
    }
  }
  for (const json& d : r["decisions"]) {
    const bool plans = d[0] == "B2" || d[0] == "B3" || d[0] == "B4" || d[0] == "B5" || d[0] == "B9";
    if (plans && r["deadline"] >= 0 && d[4] >= r["deadline"]) {
      Violation("job ", id, ": planned after its deadline: ", d.dump());
    }
  }
}

void Checker::SetDeadline(const json& r, JobSeen& job) {
  job.true_deadline =
      r["t"].get<int64_t>() + r["deadline"].get<int64_t>() - r["core"].get<int64_t>();
  job.last_deadline = std::max(job.last_deadline, job.true_deadline);
}

void Checker::CheckTasks(const json& r, const json* before) {
  const std::string id = r["job"];
  std::map<int, int> open;
  std::map<int64_t, json> rows;
  for (const json& attempt : r["attempts"]) {
    rows[attempt[0]] = attempt;
    CheckNumber(id, attempt[0]);
    const bool fresh = attempts_.insert(attempt[0].get<int64_t>()).second;
    job_of_[attempt[0]] = id;
    task_of_[attempt[0]] = attempt[1];
    if (fresh) CheckFirst(r, attempt[1].get<size_t>());
    if (fresh) ExpectStart(r, attempt);
    if (fresh && closed_.count(attempt[4]) > 0) {
      Violation("attempt ", attempt[0].get<int64_t>(), " was given to ",
                attempt[4].get<std::string>(), ", which takes nothing new");
    }
    if (fresh && attempts_.upper_bound(attempt[0]) != attempts_.end() &&
        *attempts_.rbegin() > attempt[0] && r["last_attempt"] < attempt[0]) {
      Violation("attempt numbers went back to ", attempt[0].dump());
    }
    if (attempt[2]) ++open[attempt[1]];
  }
  for (const auto& [task, count] : open) {
    if (count > 1) Violation("job ", id, " task ", task, " has ", count, " live attempts");
  }
  for (size_t i = 0; i < r["tasks"].size(); ++i) {
    const json& task = r["tasks"][i];
    const auto row = rows.find(task[1].get<int64_t>());
    if (task[0] == "RUNNING" && (row == rows.end() || !row->second[2])) {
      Violation("job ", id, " task ", i, " runs without a live attempt");
    }
    const std::string oof = task[3];
    const bool taken_over = absl::StartsWith(oof, "reused/");
    if (!oof.empty() && !taken_over &&
        oof != absl::StrCat("attempts/", task[2].get<int64_t>(), "/oof.npy")) {
      Violation("job ", id, " task ", i, ": predictions ", oof, " stand under attempt ",
                task[2].dump());
    }
    if (before == nullptr) continue;
    if (i >= (*before)["tasks"].size()) {
      if (task[5] == 0) Violation("job ", id, ": fold ", i, " came late");
      continue;
    }
    const json& old = (*before)["tasks"][i];
    if (task[1] < old[1]) Violation("job ", id, " task ", i, ": its attempt number went back");
    const std::string was = old[0];
    // A fold that was cut before it began here may come back: by B9, or with a later deadline.
    bool back = was == "DROPPED" && rows.count(old[1].get<int64_t>()) == 0;
    // One whose time was over goes on if there is more (B9).
    const bool went_on = task[0] == "PENDING" || task[1] > old[1];
    back |= was == "PARTIAL" && went_on && rows.count(old[1].get<int64_t>()) > 0 &&
            rows.at(old[1].get<int64_t>())[3] == "STOPPED_IN_TIME";
    // One that a Worker out of reach has published by itself counts when that is seen.
    back |= (task[0] == "DONE" || task[0] == "PARTIAL") && (task[2] != old[2] || task[4] != old[4]);
    if (was != "PENDING" && was != "RUNNING" && was != task[0] && !back) {
      Violation("job ", id, " task ", i, " left ", was);
    }
    if (old[4] && !task[4]) Violation("job ", id, " task ", i, " lost a complete fold");
  }
}

// Nothing of a waiting Job runs, and its budget counts from the end of the last that it waits for.
void Checker::CheckAfter(const json& r, JobSeen& job) {
  const std::string id = r["job"];
  if (!r["after"].empty() && !r["attempts"].empty()) Violation("job ", id, " waits and runs");
  if (job.last.is_null() || r["after"] == job.last["after"]) return;
  std::set<std::string> left;
  for (const json& other : r["after"]) left.insert(other.get<std::string>());
  for (const json& other : job.last["after"]) {
    if (left.count(other) == 0) job.waited_until[other] = r["t"];
  }
  if (!r["after"].empty() || r["budget"] < 0) return;
  const int64_t began = r["accepted"].get<int64_t>() + r["waited"].get<int64_t>();
  const int64_t given = job.last["deadline"];
  int64_t due = began + r["budget"].get<int64_t>();
  if (given >= 0) due = std::min(due, given);
  constexpr int64_t kRounding = 3;
  if (std::abs(r["deadline"].get<int64_t>() - due) > kRounding || began > r["core"]) {
    Violation("job ", id, " began at ", began, " and has the deadline ", r["deadline"].dump(),
              " instead of ", due);
  }
}

// The settings of a search's trial stand in the store before anything of it does, and stay.
void Checker::CheckSettings(const json& r, const json& before) {
  const json& settings = r["settings"];
  if (settings.empty()) return;
  for (const json& task : r["tasks"]) {
    if (!settings[task[7].get<size_t>()].is_null()) continue;
    Violation("job ", r["job"].get<std::string>(), ": trial ", task[7].dump(),
              " began without settings");
  }
  for (size_t t = 0; !before.is_null() && t < settings.size(); ++t) {
    const json& known = before["settings"][t];
    if (known.is_null() || known == settings[t]) continue;
    Violation("job ", r["job"].get<std::string>(), ": the settings of trial ", t, " changed");
  }
}

// A further model of a fold begins: all first ones have begun or never will.
void Checker::CheckFirst(const json& r, size_t begun) {
  if (r["tasks"][begun][5] == 0) return;
  for (const json& task : r["tasks"]) {
    if (task[5] == 0 && &task != &r["tasks"][0] && task[0] == "PENDING") {
      Violation("job ", r["job"].get<std::string>(), ": a further model began while a fold waits");
    }
  }
  // Folds that were cut come back as long as others train and there is time for one; a further
  // trial may be cheaper than what is left of them.
  const bool trains = std::any_of(r["tasks"].begin() + 1, r["tasks"].end(), [](const json& task) {
    return task[5] == 0 && task[0] == "RUNNING";
  });
  if (r["plan"][1] < r["spec_folds"] && ((trains && FoldHasTime(r)) || r["spec_trials"] == 1)) {
    Violation("job ", r["job"].get<std::string>(), ": a further model began while folds are cut");
  }
}

// Whether a fold with all epochs would certainly fit into what a Plan may fill of the rest.
bool Checker::FoldHasTime(const json& r) const {
  if (r["deadline"] < 0) return true;
  const auto known = truths_.find(r["request"]);
  if (known == truths_.end()) return false;
  const json& truth = known->second;
  const int64_t left = r["deadline"].get<int64_t>() - r["core"].get<int64_t>();
  const double left_s = static_cast<double>(left) / 1e6;
  const double model_s = truth["whole_model_s"], probe_error = truth["probe_error"];
  // What goes wrong makes folds slower than they would be.
  const double slower = faults_ ? 5 : 2;
  const double reserve_s = 0.15 * truth["window_s"].get<double>() + 1;
  return 0.8 * (left_s - reserve_s) > slower * std::max(1.0, probe_error) * model_s;
}

void Checker::CheckNumber(const std::string& id, int64_t attempt) {
  const auto owner = job_of_.find(attempt);
  if (owner == job_of_.end() || owner->second == id) return;
  Violation("attempt number ", attempt, " of job ", owner->second, " was given to job ", id,
            ", too");
}

// B13: it goes on from the last checkpoint, but not a third time where its fold failed by itself,
// and with the batch that was halved.
void Checker::ExpectStart(const json& r, const json& attempt) {
  const json& start = r["starts"][attempt[1].get<size_t>()];
  const bool afresh = start[1].get<int>() >= 2;
  given_[attempt[0]] = {afresh ? std::string() : start[0].get<std::string>(), start[2]};
}

void Checker::CheckStart(const json& r) {
  const int64_t attempt = r["attempt"];
  const auto given = given_.find(attempt);
  if (given == given_.end()) return;
  if (r["resume"] != given->second.resume) {
    Violation("attempt ", attempt, " began from the checkpoint ", r["resume"].dump(), " and not ",
              given->second.resume);
  }
  if (r["batch"] != given->second.batch) {
    Violation("attempt ", attempt, " was given batches of ", r["batch"].dump(), " and not ",
              given->second.batch);
  }
}

// Nobody is told of more epochs than were trained: an Attempt that has begun may have found its
// checkpoint unreadable.
void Checker::CheckProgressTold(const json& r) {
  for (const json& task : r["tasks"]) {
    const auto rank = ranks_.find(task[1].get<int64_t>());
    if (rank == ranks_.end() || rank->second.epochs < 0) continue;
    const auto begun = [&task](const json& row) { return row[0] == task[1] && row[5] >= 0; };
    const json& rows = r["attempts"];
    if (std::none_of(rows.begin(), rows.end(), begun)) continue;
    if (task[6].get<double>() > std::floor(rank->second.epochs) + 1) {
      Violation("job ", r["job"].get<std::string>(), " tells of ", task[6].dump(),
                " epochs of attempt ", task[1].dump(), ", which had ", rank->second.epochs);
    }
  }
}

// Rank 0 begins only with all the others that it was told of.
void Checker::CheckGang(const json& r) {
  const int64_t attempt = r["attempt"];
  size_t ranks = ranks_[attempt].slots.size();
  for (const auto& [place, part] : parts_) {
    if (place.first == attempt) ranks += part.slots.size();
  }
  if (ranks == static_cast<size_t>(ranks_[attempt].world_size)) return;
  Violation("attempt ", attempt, " began with ", ranks, " ranks instead of ",
            ranks_[attempt].world_size);
}

// A fold whose predictions were acknowledged is settled in the store, unless its
// Attempt had been given up before.
void Checker::ReadAckedFold(int64_t attempt) {
  const auto owner = job_of_.find(attempt);
  if (owner == job_of_.end()) return;
  const json& last = jobs_[owner->second].last;
  for (const json& row : last["attempts"]) {
    if (row[0] != attempt || !row[2]) continue;
    if (last["tasks"][row[1].get<size_t>()][0] == "RUNNING") {
      Violation("job ", owner->second, ": predictions of attempt ", attempt,
                " were acknowledged before they were stored");
    }
  }
}

std::vector<std::string> CheckHistory(const std::vector<json>& history, Counts* counts) {
  Checker checker(history);
  std::vector<std::string> violations = checker.Run();
  if (counts == nullptr) return violations;
  for (const auto& [what, times] : checker.counts()) (*counts)[what] += times;
  return violations;
}

}  // namespace traind::simulation
