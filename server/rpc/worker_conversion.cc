#include "server/rpc/worker_conversion.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "server/rpc/trial_settings.h"

namespace traind {
namespace {

// ms left until `end`, at least 0; -1: never.
int64_t Remaining(absl::Time end, absl::Time now) {
  if (end == absl::InfiniteFuture()) return -1;
  return std::max<int64_t>(0, absl::ToInt64Milliseconds(end - now));
}

}  // namespace

WorkerAttached AttachedFromProto(const v1::Hello& hello, uint64_t session) {
  WorkerAttached event;
  event.worker = hello.worker_id();
  event.boot = hello.boot_id();
  event.session = session;
  event.hostname = hello.hostname();
  event.pid = hello.pid();
  for (const v1::SlotInfo& slot : hello.slots()) {
    event.slots.push_back(
        {slot.index(), slot.device(), slot.name(), slot.uuid(), slot.memory_bytes()});
  }
  event.running_attempts.assign(hello.running_attempts().begin(), hello.running_attempts().end());
  event.own_folder = hello.own_folder();
  event.address = hello.address();
  for (const auto& [key, value] : hello.labels())
    event.labels.insert(absl::StrCat(key, "=", value));
  return event;
}

v1::CoordinatorMessage ToProto(const StartCommand& command, absl::Time now) {
  v1::CoordinatorMessage message;
  v1::StartTask* const start = message.mutable_start();
  const Job& job = *command.job;
  start->set_attempt(command.attempt);
  start->set_job(job.id);
  start->set_kind(static_cast<v1::StartTask::Kind>(command.kind));
  start->set_spec_json(SpecForTrial(job, command.trial));
  start->set_remaining_ms(Remaining(command.deadline, now));
  if (command.kind != TaskKind::kTrain) return message;
  start->set_fold(command.fold);
  start->set_trial(command.trial);
  start->set_seed(command.seed);
  start->mutable_slots()->Add(command.slots.begin(), command.slots.end());
  start->set_world_size(command.world_size);
  start->set_first_rank(command.first_rank);
  start->set_table(job.table.table);
  start->set_epochs(command.epochs);
  start->set_row_share(command.row_share);
  // Each of several trials has settings of its own in the spec.
  const bool several = job.spec.trials.size() > 1;
  start->set_batch(command.batch > 0 || several ? command.batch : job.spec.batch);
  if (!several) start->set_precision(job.spec.precision);
  start->set_resume(command.resume);
  start->set_stop_ms(Remaining(command.stop_at, now));
  start->set_checkpoint_every_ms(absl::ToInt64Milliseconds(job.spec.checkpoint_every));
  start->mutable_publish()->set_metric(job.spec.metric);
  start->mutable_publish()->set_spec_folds(job.spec.folds);
  start->mutable_publish()->set_plan_cut(command.plan_cut);
  return message;
}

v1::CoordinatorMessage ToProto(const StopCommand& command) {
  v1::CoordinatorMessage message;
  message.mutable_stop()->set_attempt(command.attempt);
  message.mutable_stop()->set_mode(static_cast<v1::StopAttempt::Mode>(command.mode));
  message.mutable_stop()->set_reason(static_cast<v1::StopReason>(command.reason));
  message.mutable_stop()->set_why(command.why);
  return message;
}

v1::CoordinatorMessage ToProto(const MeetCommand& command) {
  v1::CoordinatorMessage message;
  message.mutable_meet()->set_attempt(command.attempt);
  message.mutable_meet()->set_host(command.host);
  message.mutable_meet()->set_port(command.port);
  return message;
}

v1::CoordinatorMessage ToProto(const ReplanCommand& command, absl::Time now) {
  v1::CoordinatorMessage message;
  message.mutable_replan()->set_attempt(command.attempt);
  message.mutable_replan()->set_epochs(command.epochs);
  message.mutable_replan()->set_row_share(command.row_share);
  message.mutable_replan()->set_stop_ms(Remaining(command.stop_at, now));
  message.mutable_replan()->set_plan_cut(command.plan_cut);
  message.mutable_replan()->set_remaining_ms(Remaining(command.deadline, now));
  return message;
}

v1::CoordinatorMessage ToProto(const AckCommand& command) {
  v1::CoordinatorMessage message;
  message.mutable_ack()->set_sequence(command.sequence);
  return message;
}

}  // namespace traind
