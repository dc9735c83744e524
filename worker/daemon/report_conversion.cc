#include "worker/daemon/report_conversion.h"

#include <absl/status/status.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <nlohmann/json.hpp>

#include "common/job_rules/program_rules.h"
#include "common/wire/attempt_report.h"

namespace traind::worker {
namespace {

namespace rp = rank_protocol;

// For PREPARE, whose messages carry no publish context.
void ReadSpec(const std::string& spec_json, TaskStart& task) {
  const nlohmann::json spec = nlohmann::json::parse(spec_json, nullptr, false);
  if (!spec.is_object()) return;
  const nlohmann::json metric =
      spec.value(nlohmann::json::json_pointer("/task/metric"), nlohmann::json());
  const nlohmann::json folds =
      spec.value(nlohmann::json::json_pointer("/data/folds"), nlohmann::json());
  if (metric.is_string()) task.metric = metric.get<std::string>();
  // Where the spec has trials, each names a model.
  const nlohmann::json::json_pointer of_trial(absl::StrCat("/trials/", task.trial, "/model"));
  const nlohmann::json model = spec.value(of_trial, spec.value("model", nlohmann::json::object()));
  if (model.is_object()) {
    for (const auto& [kind, settings] : model.items()) {
      if (kind != "pretrained") task.model = kind;
    }
  }
  if (spec.contains("run")) task.model = kProgramKind;
  if (folds.is_number_integer()) task.spec_folds = folds.get<int>();
}

TaskKind KindFromProto(v1::StartTask::Kind kind) {
  const bool known = v1::StartTask::Kind_IsValid(kind) && kind != v1::StartTask::KIND_UNSPECIFIED;
  return known ? static_cast<TaskKind>(kind) : TaskKind::kTrain;
}

// The Rank's description of each model, as JSON.
void FillMembers(const std::string& text, v1::PredictRowsReply& reply) {
  const nlohmann::json members = nlohmann::json::parse(text, nullptr, false);
  if (!members.is_array()) return;
  const auto number = [](const nlohmann::json& of, const char* key) {
    return of.contains(key) && of[key].is_number() ? of[key].get<double>() : 0;
  };
  for (const nlohmann::json& item : members) {
    if (!item.is_object()) continue;
    v1::PredictionMember& member = *reply.add_members();
    member.set_fold(static_cast<int32_t>(number(item, "fold")));
    member.set_trial(static_cast<int32_t>(number(item, "trial")));
    member.set_seed(static_cast<int32_t>(number(item, "seed")));
    if (item.contains("kind") && item["kind"].is_string()) member.set_kind(item["kind"]);
    member.set_attempt(static_cast<int64_t>(number(item, "attempt")));
    member.set_complete(item.contains("complete") && item["complete"] == true);
    member.set_score(number(item, "score"));
    member.set_epoch(number(item, "epoch"));
    member.set_step(static_cast<int64_t>(number(item, "step")));
    member.set_weight(number(item, "weight"));
  }
}

}  // namespace

rp::Rows RowsFromProto(const v1::AskRows& ask) {
  rp::Rows rows;
  rows.attempt = ask.attempt();
  rows.request = ask.request();
  rows.columns.assign(ask.columns().begin(), ask.columns().end());
  for (const v1::RowValues& row : ask.rows()) {
    rows.values.insert(rows.values.end(), row.values().begin(), row.values().end());
  }
  return rows;
}

v1::WorkerMessage AnswerToProto(const rp::Answered& answer) {
  v1::WorkerMessage message;
  v1::RowsAnswered& to = *message.mutable_rows();
  to.set_attempt(answer.attempt);
  to.set_request(answer.request);
  to.set_message(answer.message);
  to.set_more(answer.more);
  int code = 0;
  if (!answer.code.empty() && !absl::SimpleAtoi(answer.code, &code)) {
    code = static_cast<int>(absl::StatusCode::kInternal);
  }
  to.set_code(code);
  if (code != 0) return message;
  v1::PredictRowsReply& reply = *to.mutable_reply();
  reply.mutable_targets()->Add(answer.targets.begin(), answer.targets.end());
  reply.mutable_classes()->Add(answer.classes.begin(), answer.classes.end());
  const auto& names = answer.quantile_columns;
  reply.mutable_quantile_columns()->Add(names.begin(), names.end());
  const size_t targets = answer.targets.size(), classes = answer.classes.size();
  const size_t rows = targets == 0 ? 0 : answer.values.size() / targets;
  for (size_t row = 0; row < rows; ++row) {
    v1::RowAnswer& to_row = *reply.add_rows();
    for (size_t k = 0; k < targets; ++k) to_row.add_values(answer.values[row * targets + k]);
    for (size_t c = 0; c < classes && (row + 1) * classes <= answer.probabilities.size(); ++c) {
      to_row.add_probabilities(static_cast<float>(answer.probabilities[row * classes + c]));
    }
    for (size_t q = 0; q < names.size() && (row + 1) * names.size() <= answer.quantiles.size();
         ++q) {
      to_row.add_quantiles(static_cast<float>(answer.quantiles[row * names.size() + q]));
    }
  }
  v1::Quality quality;
  if (v1::Quality_Parse(absl::StrCat("QUALITY_", answer.quality), &quality)) {
    reply.set_quality(quality);
  }
  FillMembers(answer.members, reply);
  return message;
}

absl::Duration MomentFromMs(int64_t ms, absl::Duration now) {
  return ms < 0 ? absl::InfiniteDuration() : now + absl::Milliseconds(ms);
}

TaskStart TaskFromProto(const v1::StartTask& start, absl::Duration now) {
  TaskStart task;
  task.attempt = start.attempt();
  task.job = start.job();
  task.kind = KindFromProto(start.kind());
  task.spec_json = start.spec_json();
  task.deadline_at = MomentFromMs(start.remaining_ms(), now);
  task.fold = start.fold();
  task.trial = start.trial();
  task.seed = start.seed();
  task.slots.assign(start.slots().begin(), start.slots().end());
  task.world_size = start.world_size() > 0 ? start.world_size() : 1;
  task.first_rank = start.first_rank();
  task.rendezvous_host = start.rendezvous_host();
  task.rendezvous_port = start.rendezvous_port();
  task.table = start.table();
  task.epochs = start.epochs();
  if (start.row_share() > 0) task.row_share = start.row_share();
  task.batch = start.batch();
  task.precision = start.precision();
  task.resume = start.resume();
  if (task.kind == TaskKind::kTrain) task.stop_at = MomentFromMs(start.stop_ms(), now);
  if (start.checkpoint_every_ms() > 0) {
    task.checkpoint_every = absl::Milliseconds(start.checkpoint_every_ms());
  }
  ReadSpec(task.spec_json, task);
  if (start.has_publish()) {
    if (!start.publish().metric().empty()) task.metric = start.publish().metric();
    if (start.publish().spec_folds() > 0) task.spec_folds = start.publish().spec_folds();
    task.plan_cut = start.publish().plan_cut();
  }
  return task;
}

StopMode StopModeFromProto(v1::StopAttempt::Mode mode) {
  const bool known =
      v1::StopAttempt::Mode_IsValid(mode) && mode != v1::StopAttempt::MODE_UNSPECIFIED;
  return known ? static_cast<StopMode>(mode) : StopMode::kAbort;
}

StopReason StopReasonFromProto(v1::StopReason reason) {
  StopReason value = StopReason::kNone;
  EnumField(&value, NamesOf(value)).set_number(reason);
  return value;
}

v1::WorkerMessage ReportToProto(const ReportAction& report) {
  v1::WorkerMessage message;
  *message.mutable_report() = ReportOf(report.attempt, report.fact);
  return message;
}

v1::WorkerMessage PublishedToProto(const ReportPublishedAction& published) {
  v1::WorkerMessage message;
  message.mutable_published()->set_job(published.job);
  message.mutable_published()->set_number(published.number);
  return message;
}

v1::SlotInfo SlotToProto(const Slot& slot, int index) {
  v1::SlotInfo info;
  info.set_index(index);
  info.set_device(slot.device);
  info.set_name(slot.name);
  info.set_uuid(slot.uuid);
  info.set_memory_bytes(slot.memory_bytes);
  return info;
}

}  // namespace traind::worker
