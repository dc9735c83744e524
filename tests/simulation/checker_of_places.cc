// Checks of where tasks run: on machines that meet what their Job asks for, gangs together as the
// rules of placement say, and none waits beside room for it.
#include <absl/strings/match.h>

#include <algorithm>

#include "tests/simulation/history_checker.h"

namespace traind::simulation {
namespace {

constexpr int64_t kSecond = 1'000'000;
// traind knows by then that a slot is free, and has told what a Job lacks.
constexpr int64_t kFreeIsKnown = 3 * kSecond, kToldWithin = 2 * kSecond;
// Until then the Workers come.
constexpr int64_t kAllAreThere = kSecond / 2;
// A fold does not wait for longer beside idle slots.
constexpr int64_t kLongestWait = 6 * kSecond;

}  // namespace

void Checker::ReadMachine(const json& r) {
  machines_[r["worker"]] = MachineOf(r);
  if (began_ < 0) began_ = r["t"];
}

Demand Checker::DemandOfJob(const JobSeen& job) const {
  const auto truth = truths_.find(job.last["request"]);
  const int slots = job.last["wants"];
  if (truth == truths_.end() || !truth->second.contains("asks"))
    return {{}, "", "", 0, slots, false};
  return DemandOf(truth->second["asks"], slots);
}

// Ranks run, of one part of a gang or of all of it.
void Checker::CheckPlace(const json& r) {
  const auto slots = r["slots"].get<std::vector<int>>();
  const auto machine = machines_.find(r["worker"]);
  const JobSeen& job = jobs_[r["job"]];
  if (slots.empty() || job.last.is_null() || machine == machines_.end()) return;
  const Demand demand = DemandOfJob(job);
  if (demand.any()) ++counts_["folds_with_demands"];
  const std::string why = WhyNot(demand, machine->second, slots);
  if (why.empty()) return;
  Violation("attempt ", r["attempt"].get<int64_t>(), " of job ", r["job"].get<std::string>(),
            " runs on ", machine->first, ", ", why);
}

// Whether one of those slots is what the Job asks for.
bool Checker::AnySuits(const JobSeen& job, const std::string& worker,
                       const std::vector<int>& slots) const {
  const auto machine = machines_.find(worker);
  if (machine == machines_.end()) return true;
  const Demand demand = DemandOfJob(job);
  return std::any_of(slots.begin(), slots.end(),
                     [&](int slot) { return WhyNot(demand, machine->second, {slot}).empty(); });
}

bool Checker::IsFree(const std::string& worker, int slot, int64_t t) const {
  const auto busy = busy_until_.find({worker, slot});
  return busy == busy_until_.end() || (busy->second != INT64_MAX && busy->second < t);
}

void Checker::ReadPlacements(const json& r) {
  for (const json& placed : r["all"]) {
    Placement& placement = placements_[placed[0]];
    placement.at = r["t"];
    placement.core = r["core"];
    placement.job = placed[1];
    for (const json& part : placed[2]) {
      placement.parts[part[0]] = part[1].get<std::vector<int>>();
    }
  }
  for (const json& placed : r["all"]) CheckGangPlace(placed[0], r);
  for (const json& placed : r["all"]) {
    for (const json& part : placed[2]) {
      for (const int slot : part[1]) busy_until_[{part[0], slot}] = INT64_MAX;
    }
  }
  CheckOwners();
}

// The slots of its Attempts that are not over.
int Checker::SlotsOf(const std::string& owner) const {
  size_t slots = 0;
  for (const auto& [id, job] : jobs_) {
    if (job.last.is_null() || job.last["owner"] != owner) continue;
    for (const json& attempt : job.last["attempts"]) {
      const auto placement = placements_.find(attempt[0]);
      if (attempt[2] == false || placement == placements_.end()) continue;
      for (const auto& [worker, part] : placement->second.parts) slots += part.size();
    }
  }
  return static_cast<int>(slots);
}

void Checker::CheckOwners() {
  if (owner_slots_ == 0) return;
  for (const char* owner : {"ada", "bob"}) {
    const int slots = SlotsOf(owner);
    counts_["owners_at_their_limit"] += slots == owner_slots_;
    if (slots > owner_slots_) {
      Violation(owner, " uses ", slots, " slots and may use ", owner_slots_);
    }
  }
}

void Checker::ReadPartEnd(const json& r) {
  const auto placement = placements_.find(r["attempt"]);
  if (placement == placements_.end()) return;
  const std::string worker = r["worker"];
  for (const int slot : placement->second.parts[worker]) busy_until_[{worker, slot}] = r["t"];
  placement->second.ended[worker] = r["t"];
}

// Another Job waits for a gang: slots may be kept for that.
bool Checker::SlotsMayBeKept(const std::string& except) const {
  return std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& known) {
    const json& last = known.second.last;
    if (known.first == except || last.is_null() || last["wants"] <= 1) return false;
    if (Terminal(last["state"])) return false;
    return std::any_of(last["tasks"].begin(), last["tasks"].end(),
                       [](const json& task) { return task[0] == "PENDING"; });
  });
}

// All of one device and network, and all parts differ.
void Checker::CheckGangPlace(int64_t attempt, const json& r) {
  const Placement& placement = placements_.at(attempt);
  if (!faults_) CheckGangSize(attempt, placement);
  if (placement.parts.size() > 1) {
    ++counts_["gangs_over_workers"];
    std::set<std::string> devices;
    for (const auto& [worker, slots] : placement.parts) {
      devices.insert(machines_[worker].device);
      if (machines_[worker].reachable) continue;
      Violation("attempt ", attempt, " spans Workers, and nobody reaches ", worker);
    }
    if (devices.size() > 1) Violation("attempt ", attempt, " has slots of several devices");
  }
  if (!faults_) CheckGangIsTogether(attempt, placement, r);
}

// Without faults a gang is smaller than its Job asks for only where no Workers could ever hold it,
// and when a fifth of the window, the time for a first fold, is over; a standalone traind waits for
// none.
void Checker::CheckGangSize(int64_t attempt, const Placement& placement) {
  const json& last = jobs_[placement.job].last;
  if (last.is_null()) return;  // told by another rule
  const json& truth = truths_.at(last["request"]);
  const int slots = placement.slots();
  if (slots >= last["wants"]) return;
  ++counts_["smaller_gangs"];
  const int64_t deadline = last["deadline"], accepted = last["accepted"];
  const bool too_early =
      !standalone_ && (deadline < 0 || placement.core < accepted + (deadline - accepted) / 5);
  if (!truth["too_large"] || too_early) {
    Violation("attempt ", attempt, " has ", slots, " of ", last["wants"].dump(), " slots");
  }
}

// A gang has one Worker where one has slots enough; else one rack where that suffices, and as few
// Workers as possible. Only slots that are free for certain count here.
void Checker::CheckGangIsTogether(int64_t attempt, const Placement& placement, const json& r) {
  if (placement.parts.size() < 2) return;
  const JobSeen& job = jobs_.at(placement.job);
  Demand demand = DemandOfJob(job);
  demand.slots = std::min(demand.slots, placement.slots());
  Room everywhere;                    // of the gang's device
  std::map<std::string, Room> racks;  // of it, by rack
  std::set<std::string> used;         // racks; an empty one: of none
  const std::string device = machines_[placement.parts.begin()->first].device;
  for (const auto& [worker, machine] : machines_) {
    const std::vector<int> suiting = Suiting(demand, machine);
    if (static_cast<int>(suiting.size()) >= demand.slots) {
      Violation("attempt ", attempt, " spans Workers, and ", worker, " has slots enough");
    }
    const auto own = placement.parts.find(worker);
    if (own != placement.parts.end()) used.insert(machine.rack());
    if (!machine.reachable || machine.device != device) continue;
    std::vector<int> free;
    for (const int slot : suiting) {
      const bool has = own != placement.parts.end() &&
                       std::count(own->second.begin(), own->second.end(), slot) > 0;
      if (has || IsFreeForAll(worker, slot, r)) free.push_back(slot);
    }
    if (free.empty()) continue;
    everywhere[worker] = free;
    if (!machine.rack().empty()) racks[machine.rack()][worker] = free;
  }
  if (SlotsMayBeKept(placement.job)) return;
  ++counts_["gangs_judged"];
  const bool in_one_rack = used.size() == 1 && !used.begin()->empty();
  ++counts_[in_one_rack ? "gangs_in_one_rack" : "gangs_over_racks"];
  int least = LeastMachines(everywhere, demand.slots);
  std::string rack_with_room;
  for (const auto& [rack, room] : racks) {
    const int machines = LeastMachines(room, demand.slots);
    if (machines == 0) continue;
    least = rack_with_room.empty() ? machines : std::min(least, machines);
    rack_with_room = rack;
  }
  if (!in_one_rack && !rack_with_room.empty()) {
    Violation("attempt ", attempt, " lies in several racks, and ", rack_with_room, " had room");
  } else if (static_cast<int>(placement.parts.size()) > least) {
    Violation("attempt ", attempt, " is on ", placement.parts.size(), " Workers, and ", least,
              " had room");
  }
}

// Free for some time, and no other Attempt of the same commit has it.
bool Checker::IsFreeForAll(const std::string& worker, int slot, const json& r) const {
  if (!IsFree(worker, slot, r["t"].get<int64_t>() - kFreeIsKnown)) return false;
  return std::none_of(r["all"].begin(), r["all"].end(), [&](const json& placed) {
    const auto& parts = placements_.at(placed[0]).parts;
    const auto part = parts.find(worker);
    return part != parts.end() && std::count(part->second.begin(), part->second.end(), slot) > 0;
  });
}

// ---- Jobs whose demands nobody meets

// A Job is told that no Worker suits (with a text, at least once its data are read), or no more.
void Checker::ReadTold(const json& r) {
  JobSeen& job = jobs_[r["job"]];
  if (job.last.is_null() || !r["unmatched"] || IsAsked(job)) return;
  const json& truth = truths_.at(job.last["request"]);
  if (!faults_ && truth["placeable"] && r["t"] > began_ + kAllAreThere) {
    Violation("job ", r["job"].get<std::string>(),
              " was told that no Worker suits: ", r["text"].get<std::string>());
  }
  const std::string text = r["text"];
  const std::vector<std::string> told = WhatIsTold(DemandOfJob(job), machines_);
  const bool named = std::any_of(told.begin(), told.end(), [&text](const std::string& part) {
    return absl::StrContains(text, part);
  });
  if (named && job.told_at < 0) job.told_at = r["t"];
}

void Checker::NoteUnmet(const json& r, JobSeen& job) {
  if (job.unmet_since >= 0 || r["state"] != "QUEUED" || r["tasks"][0][0] != "DONE") return;
  const auto truth = truths_.find(r["request"]);
  if (truth != truths_.end() && !truth->second["placeable"]) job.unmet_since = r["t"];
}

// It is told what is missing, and the floor answers; but where only its gang is too large, it
// trains on a smaller one before its deadline.
void Checker::CheckUnmet(const std::string& id, const JobSeen& job) {
  const json& truth = truths_.at(job.last["request"]);
  if (faults_ || truth["interrupted"] || truth["reuses"] || job.unmet_since < 0) return;
  if (truth["too_large"] && standalone_) return CheckSmallerGang(id, job);
  ++counts_["jobs_that_nobody_suits"];
  int64_t until = job.terminal_at < 0 ? end_ : job.terminal_at;
  if (truth["too_large"] && job.true_deadline >= 0) {  // later it may wait for fewer slots
    until =
        std::min(until, job.true_deadline -
                            static_cast<int64_t>(0.8 * truth["window_s"].get<double>() * kSecond));
  }
  if (until > job.unmet_since + kToldWithin &&
      (job.told_at < 0 || job.told_at > job.unmet_since + kToldWithin)) {
    Violation("job ", id, " was not told that ", WhatIsTold(DemandOfJob(job), machines_).front());
  }
  if (job.terminal_at < 0) return;
  if (truth["too_large"] && job.true_deadline >= 0) return CheckSmallerGang(id, job);
  const bool floor = !job.last["has_test"] || job.last["quality"] == 1;
  if (!floor || job.last["reason"] != "NO_WORKER") {
    Violation("job ", id, ", which no Worker suits, ended with the quality ",
              job.last["quality"].dump(), " because of ", job.last["reason"].get<std::string>());
  }
}

// A fifth of the window is for the whole gang.
void Checker::CheckSmallerGang(const std::string& id, const JobSeen& job) {
  const json& truth = truths_.at(job.last["request"]);
  const double window = truth["window_s"];
  const bool fits =
      truth["alone"] && !truth["bad_data"] && job.last["has_test"] && window > 2 &&
      0.2 * window > truth["first_model_s"].get<double>() * job.last["wants"].get<int>();
  if (!fits || job.last["state"] != "SUCCEEDED") return;
  ++counts_["smaller_gangs_judged"];
  if (job.last["quality"] < 2) {
    Violation("job ", id, " has trained on no smaller gang, with ", window, " s of time");
  }
}

// ---- folds that wait

void Checker::NoteWaits(const json& r, JobSeen& job) {
  const std::string state = r["state"];
  const bool trains = (state == "QUEUED" || state == "RUNNING") && r["tasks"][0][0] == "DONE" &&
                      r.contains("plan") && r["after"].empty();
  for (size_t i = 1; i < r["tasks"].size(); ++i) {
    const json& task = r["tasks"][i];
    const bool waits = trains && task[0] == "PENDING" && task[5] == 0;
    const auto open = job.waiting.find(i);
    if (waits && open == job.waiting.end()) {
      job.waiting[i] = {i, r["t"], -1, job.preempted_at.count(i) > 0};
    } else if (!waits && open != job.waiting.end()) {
      open->second.to = r["t"];
      job.waited.push_back(open->second);
      job.waiting.erase(open);
    }
  }
}

Checker::BusyBySlot Checker::BusySpans() const {
  BusyBySlot busy;
  for (const auto& [attempt, placement] : placements_) {
    for (const auto& [worker, slots] : placement.parts) {
      const auto ended = placement.ended.find(worker);
      const int64_t to = ended == placement.ended.end() ? INT64_MAX : ended->second;
      for (const int slot : slots) busy[{worker, slot}].emplace_back(placement.at, to);
    }
  }
  return busy;
}

// Without faults no fold waits beside idle slots that suffice for its gang, unless they may be
// kept for the gang of another Job.
void Checker::CheckWaits() {
  if (faults_ || machines_.empty() || owner_slots_ > 0) return;
  const auto busy = BusySpans();
  std::map<std::string, std::vector<Wait>> waits;
  for (const auto& [id, job] : jobs_) {
    waits[id] = job.waited;
    for (const auto& [task, wait] : job.waiting) {
      waits[id].push_back(wait);
      waits[id].back().to = job.terminal_at < 0 ? end_ : job.terminal_at;
    }
  }
  for (const auto& [id, job] : jobs_) {
    if (job.last.is_null() || IsAsked(job) || truths_.at(job.last["request"])["reuses"]) continue;
    for (const Wait& wait : waits[id]) {
      ++counts_[wait.made_room ? "waits_after_making_room" : "waits"];
      const int64_t from = IdleBeside(DemandOfJob(job), wait, busy);
      if (from < 0) continue;
      const bool kept = std::any_of(waits.begin(), waits.end(), [&](const auto& others) {
        if (others.first == id || jobs_.at(others.first).last["wants"] <= 1) return false;
        return std::any_of(others.second.begin(), others.second.end(), [&](const Wait& other) {
          return other.from < from + kLongestWait && other.to > from;
        });
      });
      if (kept) continue;
      Violation("job ", id, ": fold ", wait.task - 1,
                wait.made_room ? ", which has made room," : "", " waits at ", from,
                " beside idle slots that suit");
    }
  }
}

// Since when as many slots as a gang needs were idle for kLongestWait of that wait; -1: never.
int64_t Checker::IdleBeside(const Demand& demand, const Wait& wait, const BusyBySlot& busy) const {
  std::set<int64_t> moments = {wait.from};
  for (const auto& [slot, spans] : busy) {
    for (const auto& [from, to] : spans) {
      if (to > wait.from && to != INT64_MAX) moments.insert(to);
    }
  }
  for (const int64_t from : moments) {
    const int64_t to = from + kLongestWait;
    if (to > wait.to) break;
    int on_one = 0, most = 0;
    std::map<std::string, int> together;  // of Workers that are reached, by device
    for (const auto& [worker, machine] : machines_) {
      int idle = 0;
      const std::vector<int> suiting = Suiting(demand, machine);
      for (const int slot : suiting) {
        const auto spans = busy.find({worker, slot});
        idle += spans == busy.end() ||
                std::none_of(spans->second.begin(), spans->second.end(), [&](const auto& span) {
                  return span.first < to && span.second > from;
                });
      }
      most = std::max(most, static_cast<int>(suiting.size()));
      on_one = std::max(on_one, idle);
      if (machine.reachable) together[machine.device] += idle;
    }
    if (on_one >= demand.slots) return from;
    if (most >= demand.slots || !demand.may_span) continue;
    for (const auto& [device, idle] : together) {
      if (idle >= demand.slots) return from;
    }
  }
  return -1;
}

}  // namespace traind::simulation
