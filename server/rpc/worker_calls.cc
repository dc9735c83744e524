// TrainingCalls: the calls about Workers.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "server/domain/names.h"
#include "server/rpc/training_calls.h"
#include "server/rpc/worker_gateway.h"

namespace traind {
namespace {

constexpr absl::Duration kLongestGrace = absl::Hours(24 * 30);

absl::Duration GraceOf(const v1::UpdateWorkerRequest& request) {
  return absl::Seconds(request.grace().seconds()) + absl::Nanoseconds(request.grace().nanos());
}

absl::Status Check(const v1::UpdateWorkerRequest& request) {
  if (request.id().empty()) return absl::InvalidArgumentError("id: it is empty");
  switch (request.mode()) {
    case v1::WORKER_MODE_UNSPECIFIED:
    case v1::WORKER_MODE_CORDONED:
      if (!request.has_grace()) return absl::OkStatus();
      return absl::InvalidArgumentError("grace: only with the mode WORKER_MODE_DRAINING");
    case v1::WORKER_MODE_DRAINING:
      break;
    default:
      return absl::InvalidArgumentError(
          "mode: WORKER_MODE_CORDONED, WORKER_MODE_DRAINING, or unset");
  }
  const absl::Duration grace = GraceOf(request);
  if (grace < absl::ZeroDuration() || grace > kLongestGrace) {
    return absl::InvalidArgumentError("grace: 0 s to 30 days");
  }
  return absl::OkStatus();
}

// Adds what runs on them.
void AddAttempts(const std::vector<std::shared_ptr<const Job>>& jobs,
                 google::protobuf::RepeatedPtrField<v1::WorkerInfo>& workers) {
  for (const auto& job : jobs) {
    for (const Attempt& attempt : job->attempts) {
      if (attempt.ended_at != absl::InfiniteFuture()) continue;
      for (v1::WorkerInfo& worker : workers) {
        const std::vector<int>* held = SlotsOn(attempt, worker.id());
        if (held == nullptr) continue;
        worker.set_attempts(worker.attempts() + 1);
        for (v1::SlotInfo& slot : *worker.mutable_slots()) {
          if (std::find(held->begin(), held->end(), slot.index()) == held->end()) continue;
          slot.set_job(job->id);
          slot.set_task(TaskName(attempt));
          slot.set_attempt(attempt.id);
        }
      }
    }
  }
}

}  // namespace

absl::Status TrainingCalls::ListWorkers(const v1::ListWorkersRequest&,
                                        v1::ListWorkersReply* reply) {
  std::vector<v1::WorkerInfo> workers = workers_->Workers();
  std::sort(workers.begin(), workers.end(),
            [](const v1::WorkerInfo& a, const v1::WorkerInfo& b) { return a.id() < b.id(); });
  for (v1::WorkerInfo& worker : workers) *reply->add_workers() = std::move(worker);
  AddAttempts(loop_->views().Active(), *reply->mutable_workers());
  return absl::OkStatus();
}

void TrainingCalls::UpdateWorker(const v1::UpdateWorkerRequest& request, v1::WorkerInfo* reply,
                                 Done done) {
  if (const absl::Status checked = Check(request); !checked.ok()) return done(checked);
  traind::UpdateWorker event;
  event.worker = request.id();
  event.mode = static_cast<WorkerMode>(request.mode());
  event.grace = GraceOf(request);
  loop_->UpdateWorker(
      event, [this, done = std::move(done), reply, id = request.id()](const Reply& answer) {
        v1::ListWorkersReply all;
        if (answer.status.ok()) ListWorkers({}, &all).IgnoreError();
        for (v1::WorkerInfo& worker : *all.mutable_workers()) {
          if (worker.id() == id) *reply = std::move(worker);
        }
        done(answer.status);
      });
}

}  // namespace traind
