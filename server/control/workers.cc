// Workers: who is there, what they still run, and when one counts as lost.
#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "server/control/control_core_impl.h"

namespace traind {
namespace {

constexpr char kCpu[] = "cpu";

// REQUIRES: sorted.
bool Lists(const std::vector<int64_t>& attempts, int64_t id) {
  return std::binary_search(attempts.begin(), attempts.end(), id);
}

}  // namespace

void ControlCore::Impl::Handle(WorkerAttached& event) {
  WorkerState& worker = workers_[event.worker];
  if (event.session < worker.session) return;
  const bool new_boot = !worker.boot.empty() && worker.boot != event.boot;
  worker.id = event.worker;
  worker.boot = event.boot;
  worker.hostname = std::move(event.hostname);
  worker.session = event.session;
  worker.attached = true;
  worker.attached_at = worker.last_seen = now_;
  worker.slots = std::move(event.slots);
  if (std::exchange(worker.leaving, false)) NoteMode(worker);
  worker.own_folder = event.own_folder;
  worker.address = std::move(event.address);
  worker.labels = std::move(event.labels);
  worker.expected = true;
  worker.foreign.clear();
  StoreWorker(worker);
  std::sort(event.running_attempts.begin(), event.running_attempts.end());

  for (const int64_t id : std::set(worker.attempts)) {
    const auto it = attempts_.find(id);
    LiveAttempt& live = it->second;
    AttemptPart* const part = live.PartOn(worker.id);
    if (Lists(event.running_attempts, live.id)) {
      SetMissingBy(live, *part, absl::InfiniteFuture());
      // The last orders may have been lost with the stream.
      live.stop_sent = false;
      live.epochs = -1;
      if (live.open) {
        live.job->pace.replan_wanted = true;
        live.job->pace.news_by = now_ + NewsGrace(*live.job);
        // Folds are told theirs with the Plan.
        if (live.kind != TaskKind::kTrain) TellDeadline(*live.job, live);
        Touch(*live.job);
      } else if (!live.saved_last) {
        AbortStale(worker.id, live.id, "this Attempt is over");
      }
    } else if (!live.open) {
      ErasePart(it, *part);
    } else if (new_boot) {
      if (live.needs(*part)) {
        EndAttempt(live, AttemptEndReason::kWorkerLost, "its worker was started anew");
      }
      ErasePart(it, *part);
    } else {
      // Its last facts are on their way, or it never came to be.
      SetMissingBy(live, *part, now_ + std::min(kResendGrace, options_.lease));
    }
  }
  for (int64_t id : event.running_attempts) {
    const auto it = attempts_.find(id);
    if (it != attempts_.end() && it->second.PartOn(worker.id) != nullptr) continue;
    worker.foreign.insert(id);
    AbortStale(worker.id, id, "this Attempt is over");
  }
  NoteWorker(worker);
  if (shutting_down_ && options_.standalone) turn_.shutdowns.push_back({worker.id});
  ReplanTraining();
}

void ControlCore::Impl::Handle(WorkerHeartbeat& event) {
  const auto found = workers_.find(event.worker);
  if (found == workers_.end() || found->second.session != event.session) return;
  WorkerState& worker = found->second;
  worker.last_seen = now_;
  if (worker.leaving != event.leaving) {
    worker.leaving = event.leaving;
    NoteMode(worker);
    NoteWorker(worker);
    ReplanTraining();
  }
  if (!worker.attached) {
    // Given up too early: it was silent for a lease.
    worker.attached = worker.expected = true;
    NoteWorker(worker);
    StoreWorker(worker);
    ReplanTraining();
  }
  if (now_ - worker.row_at >= absl::Seconds(30)) StoreWorker(worker);
  const std::set<int64_t> foreign = std::exchange(worker.foreign, {});
  std::sort(event.running_attempts.begin(), event.running_attempts.end());
  for (int64_t id : event.running_attempts) {
    const auto it = attempts_.find(id);
    if (it == attempts_.end() || it->second.PartOn(worker.id) == nullptr) {
      worker.foreign.insert(id);
      AbortStale(worker.id, id, "this Attempt is over");
    }
  }
  if (worker.foreign != foreign) NoteWorker(worker);
  for (const int64_t id : std::set(worker.attempts)) {
    const auto it = attempts_.find(id);
    LiveAttempt& live = it->second;
    AttemptPart* const part = live.PartOn(worker.id);
    const bool listed = Lists(event.running_attempts, live.id);
    // The Worker has repeated its facts before this, and a start on an earlier stream that it did
    // not get is gone. One that leaves says so before its facts.
    if (live.open && !listed && !event.leaving && live.started_at < worker.attached_at) {
      LosePart(it, *part);
      continue;
    }
    // The message of an Attempt that began or ended just now may have crossed the heartbeat.
    const absl::Time settled = (live.open ? live.started_at : live.closed_at) + absl::Seconds(2);
    if (now_ < settled) continue;
    if (listed) {
      SetMissingBy(live, *part, absl::InfiniteFuture());
      if (!live.open) AbortStale(worker.id, live.id, "this Attempt is over");
    } else if (!live.open) {
      ErasePart(it, *part);
    } else {
      SetMissingBy(live, *part, std::min(part->missing_by, now_ + kUnlistedGrace));
    }
  }
}

void ControlCore::Impl::Handle(WorkerDetached& event) {
  const auto found = workers_.find(event.worker);
  if (found == workers_.end() || found->second.session != event.session) return;
  WorkerState& worker = found->second;
  worker.session = event.session + 1;  // its heartbeats are history
  if (!worker.attached) return;
  worker.attached = false;
  if (worker.leaving) worker.expected = false;  // it does not come back
  worker.last_seen = now_;
  NoteWorker(worker);
  StoreWorker(worker);
  ReplanTraining();
}

void ControlCore::Impl::Handle(WorkerDied& event) {
  const auto found = workers_.find(event.worker);
  if (found == workers_.end()) return;
  WorkerState& worker = found->second;
  if (worker.attached && worker.session > event.session) return;
  LoseWorker(worker, "its worker died");
}

void ControlCore::Impl::LoseWorker(WorkerState& worker, const char* why) {
  worker.attached = worker.expected = false;
  worker.foreign.clear();
  for (const int64_t id : std::set(worker.attempts)) {
    const auto it = attempts_.find(id);
    AttemptPart* const part = it->second.PartOn(worker.id);
    if (it->second.needs(*part)) EndAttempt(it->second, AttemptEndReason::kWorkerLost, why);
    ErasePart(it, *part);
  }
  NoteWorker(worker);
  StoreWorker(worker);
  ReplanTraining();
}

void ControlCore::Impl::CheckWorkers() {
  if (now_ < NextWorkerCheck()) return;
  while (!worker_checks_.empty() && worker_checks_.begin()->first <= now_) {
    WorkerState& worker = workers_.at(worker_checks_.begin()->second);
    const bool silent = !options_.standalone && now_ >= worker.last_seen + options_.lease;
    if (silent && (worker.attached || !worker.attempts.empty())) {
      LoseWorker(worker, "nothing was heard of its worker for a lease");
    } else if (silent && worker.expected) {
      worker.expected = false;
      NoteWorker(worker);
      ReplanTraining();
    } else if (IsAwaited(worker) && now_ >= worker.row_at + SilenceStep()) {
      StoreWorker(worker);
    }
    SetCheck(worker);
  }
  if (shrink_from_ != absl::InfinitePast()) AwaitWorkers();
  while (!missing_.empty() && std::get<absl::Time>(*missing_.begin()) <= now_) {
    const auto [by, id, first_rank] = *missing_.begin();
    const auto it = attempts_.find(id);
    for (AttemptPart& part : it->second.parts) {
      if (part.first_rank != first_rank) continue;
      LosePart(it, part);
      break;
    }
  }
}

void ControlCore::Impl::AwaitWorkers() {
  if (now_ >= shrink_from_) {
    shrink_from_ = absl::InfinitePast();
    if (std::exchange(awaited_is_stored_, false)) turn_.mutations.awaited = absl::ZeroDuration();
    ReplanTraining();
  } else if (!jobs_.empty() && now_ >= awaited_at_ + SilenceStep()) {
    awaited_at_ = now_;
    awaited_is_stored_ = true;
    turn_.mutations.awaited = now_ + SilenceStep() - (shrink_from_ - options_.lease);
  }
}

void ControlCore::Impl::LosePart(AttemptIt it, AttemptPart& part) {
  if (it->second.needs(part)) {
    EndAttempt(it->second, AttemptEndReason::kWorkerLost, "its worker does not run it");
  }
  ErasePart(it, part);
}

absl::Time ControlCore::Impl::NextWorkerCheck() const {
  absl::Time next =
      missing_.empty() ? absl::InfiniteFuture() : std::get<absl::Time>(*missing_.begin());
  if (!worker_checks_.empty()) next = std::min(next, worker_checks_.begin()->first);
  if (shrink_from_ != absl::InfinitePast()) {
    next = std::min(next, shrink_from_);
    if (!jobs_.empty()) next = std::min(next, awaited_at_ + SilenceStep());
  }
  return next;
}

void ControlCore::Impl::SetCheck(WorkerState& worker) {
  absl::Time at = absl::InfiniteFuture();
  if (worker.drain_at > now_) at = worker.drain_at;
  const bool counts = worker.attached || worker.expected || !worker.attempts.empty();
  if (counts && !options_.standalone) at = std::min(at, worker.last_seen + options_.lease);
  if (IsAwaited(worker)) at = std::min(at, worker.row_at + SilenceStep());
  if (at == worker.check_at) return;
  worker_checks_.erase({worker.check_at, worker.id});
  worker.check_at = at;
  if (at != absl::InfiniteFuture()) worker_checks_.insert({at, worker.id});
}

WorkerSlots ControlCore::Impl::SlotsOf(const WorkerState& worker) {
  WorkerSlots slots;
  slots.worker = worker.id;
  slots.own_folder = worker.own_folder;
  // The loopback of a host is reached on that host alone.
  const bool loopback = absl::StartsWith(worker.address, "127.") || worker.address == "::1";
  if (!worker.address.empty()) slots.network = loopback ? "lo of " + worker.hostname : "outer";
  slots.labels = worker.labels;
  for (const Slot& slot : worker.slots) {
    WorkerSlots::Slot& added = slots.slots.emplace_back();
    added.index = slot.index;
    added.device = slot.device;
    if (slot.device == kCpu) continue;
    added.gpu = absl::AsciiStrToLower(slot.name);
    added.memory_bytes = slot.memory_bytes;
  }
  return slots;
}

void ControlCore::Impl::NoteSlots(const WorkerState& worker) {
  if (!worker.takes_tasks()) return board_.Remove(worker.id);
  WorkerSlots slots = SlotsOf(worker);
  for (WorkerSlots::Slot& slot : slots.slots) slot.free = worker.foreign.empty();
  for (const int64_t id : worker.attempts) {
    LiveAttempt& live = attempts_.at(id);
    for (const int index : live.PartOn(worker.id)->slots) {
      for (WorkerSlots::Slot& slot : slots.slots) {
        if (slot.index != index) continue;
        slot.free = false;
        slot.free_at = live.expected_end;
      }
    }
  }
  board_.Put(std::move(slots));
}

void ControlCore::Impl::NoteWorker(WorkerState& worker) {
  if (worker.expected_as) expected_.Remove(*worker.expected_as);
  worker.expected_as.reset();
  if (worker.expected && worker.open()) {
    expected_.Add(worker.expected_as.emplace(Capacity::KindOf(SlotsOf(worker))));
  }
  NoteSlots(worker);
  NoteAttempts(worker);
}

// Each Worker stands among all, and among those with each of its labels.
void ControlCore::Impl::NoteIdle(WorkerState& worker) {
  if (worker.idle_as) {
    const std::pair<int, std::string> place(*worker.idle_as, worker.id);
    for (const std::string& label : worker.idle_labels) {
      const auto it = idle_.find(label);
      it->second.erase(place);
      if (it->second.empty() && !label.empty()) idle_.erase(it);
    }
  }
  worker.idle_as.reset();
  if (!worker.takes_tasks()) return;
  worker.idle_as = worker.prepares;
  worker.idle_labels = worker.labels;
  worker.idle_labels.insert("");
  for (const std::string& label : worker.idle_labels) {
    idle_[label].insert({worker.prepares, worker.id});
  }
}

void ControlCore::Impl::NoteAttempts(WorkerState& worker) {
  NoteIdle(worker);
  if (worker.mode == WorkerMode::kDraining && !worker.attempts.empty()) {
    draining_.insert(worker.id);
  } else {
    draining_.erase(worker.id);
  }
  SetCheck(worker);
}

void ControlCore::Impl::StoreWorker(WorkerState& worker) {
  worker.row_at = now_;
  const absl::Duration silent =
      IsAwaited(worker) ? now_ + SilenceStep() - worker.last_seen : absl::ZeroDuration();
  turn_.mutations.workers.push_back(
      {worker.id, worker.hostname, now_, worker.slots, worker.mode, worker.drain_at, silent});
}

}  // namespace traind
