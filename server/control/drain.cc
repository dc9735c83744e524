// Workers that take nothing new: cordoned or drained by an operator, or about to leave.
#include <absl/strings/str_cat.h>

#include "server/control/control_core_impl.h"

namespace traind {
namespace {

// So many names are told where one is not known.
constexpr size_t kNamesTold = 8;

}  // namespace

void ControlCore::Impl::Handle(UpdateWorker& event) {
  const auto found = workers_.find(event.worker);
  if (found == workers_.end() || found->second.id.empty()) {
    return Answer(event.call, NoSuchWorker(event.worker), nullptr);
  }
  WorkerState& worker = found->second;
  worker.mode = event.mode;
  worker.drain_at =
      event.mode == WorkerMode::kDraining ? now_ + event.grace : absl::InfiniteFuture();
  NoteWorker(worker);
  StoreWorker(worker);
  turn_.mutations.durable = true;
  Answer(event.call, absl::OkStatus(), nullptr);
  NoteMode(worker);
  ReplanTraining();
}

absl::Status ControlCore::Impl::NoSuchWorker(const std::string& id) const {
  std::string known;
  size_t count = 0;
  for (const auto& [other, worker] : workers_) {
    if (worker.id.empty() || ++count > kNamesTold) continue;
    absl::StrAppend(&known, known.empty() ? "; there is " : ", ", other);
  }
  if (count > kNamesTold) absl::StrAppend(&known, " and ", count - kNamesTold, " more");
  return absl::NotFoundError(absl::StrCat("no worker has the id ", id, known));
}

void ControlCore::Impl::NoteMode(const WorkerState& worker) {
  turn_.notes.push_back({worker.id, worker.hostname,
                         worker.leaving ? WorkerMode::kLeaving : worker.mode, worker.drain_at});
}

void ControlCore::Impl::RestoreWorkers(const Snapshot& snapshot) {
  for (const WorkerNote& note : snapshot.workers) {
    WorkerState& worker = workers_[note.id];
    worker.id = note.id;
    worker.hostname = note.hostname;
    worker.mode = note.mode;
    worker.drain_at = note.drain_at;
    worker.last_seen = now_ - note.silent;
    NoteWorker(worker);
    if (note.mode != WorkerMode::kNone) NoteMode(worker);
  }
}

void ControlCore::Impl::DrainWorkers() {
  for (const std::string& id : std::set(draining_)) {
    if (workers_.at(id).drain_at <= now_) MoveAttempts(id);
  }
}

// A fold saves a checkpoint first; everything else begins again elsewhere.
void ControlCore::Impl::MoveAttempts(const std::string& worker) {
  constexpr char kWhy[] = "its worker is drained";
  for (const int64_t id : std::set(workers_.at(worker).attempts)) {
    LiveAttempt& live = attempts_.at(id);
    if (!live.open || live.stop_sent) continue;
    if (live.kind == TaskKind::kTrain) {
      SendStop(live, StopMode::kDrop, StopReason::kMoved, kWhy);
    } else {
      EndAttempt(live, AttemptEndReason::kShutdown, kWhy);
      SendStop(live, StopMode::kAbort, StopReason::kMoved, kWhy);
    }
  }
}

}  // namespace traind
