#include "server/rpc/worker_conversion.h"

#include <absl/strings/match.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace traind {
namespace {

static_assert(static_cast<int>(AttemptEndReason::kInternal) == v1::ATTEMPT_END_REASON_INTERNAL);
static_assert(static_cast<int>(AttemptEndReason::kRankDied) == v1::ATTEMPT_END_REASON_RANK_DIED);
static_assert(static_cast<int>(StopMode::kAbort) == v1::StopAttempt::ABORT);
static_assert(static_cast<int>(StopMode::kPredict) == v1::StopAttempt::PREDICT);
static_assert(static_cast<int>(TaskKind::kTrain) == v1::StartTask::KIND_TRAIN);
static_assert(static_cast<int>(TaskKind::kServe) == v1::StartTask::KIND_SERVE);

// ms left until `end`, at least 0; -1: never.
int64_t Remaining(absl::Time end, absl::Time now) {
  if (end == absl::InfiniteFuture()) return -1;
  return std::max<int64_t>(0, absl::ToInt64Milliseconds(end - now));
}

// A measured duration; what is none becomes 0, "not measured".
double Measurement(double seconds) { return std::isfinite(seconds) && seconds > 0 ? seconds : 0; }

// Paths of a Worker end in file operations here: they stay below where they belong.
bool StaysInside(const std::string& path) {
  if (absl::StartsWith(path, "/")) return false;
  const std::vector<absl::string_view> parts = absl::StrSplit(path, '/');
  return std::find(parts.begin(), parts.end(), "..") == parts.end();
}

AttemptEndReason ReasonFromProto(v1::AttemptEndReason reason) {
  if (!v1::AttemptEndReason_IsValid(reason) || reason == v1::ATTEMPT_END_REASON_UNSPECIFIED) {
    return AttemptEndReason::kInternal;
  }
  return static_cast<AttemptEndReason>(reason);
}

TableReady FromProto(const v1::TableReady& from) {
  TableReady to;
  to.table.table = from.table();
  to.table.content_sha256 = from.content_sha256();
  to.table.train_rows = from.train_rows();
  to.table.test_rows = from.test_rows();
  to.table.features = from.features();
  to.table.classes = from.classes();
  to.read = absl::Milliseconds(from.read_ms());
  to.cached = from.cached();
  to.warnings.assign(from.warnings().begin(), from.warnings().end());
  return to;
}

Progressed FromProto(const v1::ProgressReport& from) {
  Progressed to;
  to.live.step = from.step();
  to.live.epoch = from.epoch();
  to.live.loss = from.loss();
  to.live.learning_rate = from.learning_rate();
  to.live.steps_per_s = from.steps_per_s();
  to.live.samples_per_s = from.samples_per_s();
  to.live.data_wait = from.data_wait();
  constexpr size_t kMostSignals = 32;
  for (const auto& [name, value] : from.signals()) {
    if (to.signals.size() < kMostSignals && name.size() < 64) to.signals.push_back({name, value});
  }
  std::sort(to.signals.begin(), to.signals.end());  // the map has no order
  return to;
}

CheckpointCommitted FromProto(const v1::CheckpointSaved& from) {
  CheckpointCommitted to;
  to.checkpoint.step = from.step();
  to.checkpoint.epoch = from.epoch();
  to.checkpoint.manifest = from.manifest();
  to.checkpoint.sha256 = from.sha256();
  to.checkpoint.bytes = from.bytes();
  to.checkpoint.best_metric = from.best_metric();
  return to;
}

FoldSaved FromProto(const v1::FoldSaved& from) {
  FoldSaved to;
  to.member.fold = from.fold();
  to.member.complete = from.complete();
  to.member.score = from.score();
  to.member.epochs_done = from.epochs_done();
  to.member.oof = from.oof();
  to.member.oof_sha256 = from.oof_sha256();
  to.member.test = from.test();
  to.member.test_sha256 = from.test_sha256();
  to.member.best_epoch = Measurement(from.best_epoch());
  to.member.step = from.step();
  to.member.seed = from.seed();
  to.last = from.last();
  to.stopped_by = from.stopped_by();
  to.predict_s = Measurement(from.predict_s());
  return to;
}

}  // namespace

std::optional<Fact> FactFromProto(const v1::AttemptReport& report) {
  switch (report.report_case()) {
    case v1::AttemptReport::kTableReady:
      if (!StaysInside(report.table_ready().table())) return std::nullopt;
      return FromProto(report.table_ready());
    case v1::AttemptReport::kFloorReady:
      return FloorReady{report.floor_ready().model(), report.floor_ready().score()};
    case v1::AttemptReport::kStarted: {
      const v1::Started& from = report.started();
      return TrainStarted{from.parameters(),       from.precision(),  from.batch(),
                          from.steps_per_epoch(),  from.first_step(), from.start_epoch(),
                          from.resolved_settings()};
    }
    case v1::AttemptReport::kProbe: {
      const v1::Probe& from = report.probe();
      return Probed{Measurement(from.step_s()), Measurement(from.step_p90_s()), from.timed_steps(),
                    Measurement(from.evaluate_s()), Measurement(from.predict_s())};
    }
    case v1::AttemptReport::kProgress:
      return FromProto(report.progress());
    case v1::AttemptReport::kEpoch: {
      const v1::EpochReport& from = report.epoch();
      return EpochDone{from.epoch(),
                       from.step(),
                       from.train_loss(),
                       from.val_loss(),
                       from.val_metric(),
                       from.best_metric(),
                       Measurement(from.epoch_s()),
                       Measurement(from.evaluate_s()),
                       from.rows() > 0 && from.rows() < 1 ? from.rows() : 1};
    }
    case v1::AttemptReport::kCheckpointSaved:
      if (!StaysInside(report.checkpoint_saved().manifest())) return std::nullopt;
      return FromProto(report.checkpoint_saved());
    case v1::AttemptReport::kFoldSaved:
      if (!StaysInside(report.fold_saved().oof()) || !StaysInside(report.fold_saved().test())) {
        return std::nullopt;
      }
      return FromProto(report.fold_saved());
    case v1::AttemptReport::kEnded:
      return AttemptEnded{ReasonFromProto(report.ended().reason()), report.ended().message()};
    case v1::AttemptReport::kDecision: {
      const v1::DecisionReport& from = report.decision();
      return RankDecision{from.rule(), from.cause(), from.from(), from.to()};
    }
    case v1::AttemptReport::REPORT_NOT_SET:
      break;
  }
  return std::nullopt;
}

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
  return event;
}

v1::CoordinatorMessage ToProto(const StartCommand& command, absl::Time now) {
  v1::CoordinatorMessage message;
  v1::StartTask* const start = message.mutable_start();
  const Job& job = *command.job;
  start->set_attempt(command.attempt);
  start->set_job(job.id);
  start->set_kind(static_cast<v1::StartTask::Kind>(command.kind));
  start->set_spec_json(job.spec_json);
  start->set_remaining_ms(Remaining(command.deadline, now));
  if (command.kind != TaskKind::kTrain) return message;
  start->set_fold(command.fold);
  start->set_seed(command.seed);
  start->mutable_slots()->Add(command.slots.begin(), command.slots.end());
  start->set_world_size(static_cast<int>(command.slots.size()));
  start->set_table(job.table.table);
  start->set_epochs(command.epochs);
  start->set_rows(command.rows);
  start->set_batch(command.batch > 0 ? command.batch : job.spec.batch);
  start->set_precision(job.spec.precision);
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
  message.mutable_stop()->set_why(command.why);
  return message;
}

v1::CoordinatorMessage ToProto(const ReplanCommand& command, absl::Time now) {
  v1::CoordinatorMessage message;
  message.mutable_replan()->set_attempt(command.attempt);
  message.mutable_replan()->set_epochs(command.epochs);
  message.mutable_replan()->set_rows(command.rows);
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
