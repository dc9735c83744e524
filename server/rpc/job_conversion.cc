#include "server/rpc/job_conversion.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <set>

#include "common/base/job_layout.h"
#include "common/spec/spec_rules.h"
#include "server/domain/names.h"

namespace traind {
namespace {

// Figures of a fold that has said nothing for so long are not its present ones.
constexpr absl::Duration kLiveFor = absl::Seconds(10);

template <typename Setter>
void SetTime(absl::Time time, Setter mutable_field) {
  if (time != absl::InfiniteFuture() && time != absl::InfinitePast()) {
    *mutable_field() = ToProto(time);
  }
}

// Protobuf allocates an empty text that is set; a list of Jobs has many.
template <typename Setter>
void SetText(const std::string& text, Setter set) {
  if (!text.empty()) set(text);
}

void FillFold(const Task& task, const JobContext& context, v1::Fold& fold) {
  fold.set_index(task.fold);
  fold.set_seed(task.seed);
  fold.set_trial(task.trial);
  fold.set_state(static_cast<v1::TaskState>(task.state));
  fold.mutable_progress()->set_unit(v1::PROGRESS_UNIT_EPOCH);
  fold.mutable_progress()->set_planned(task.epochs_planned);
  fold.mutable_progress()->set_done(task.epochs_done);
  if (task.score) fold.set_score(*task.score);
  fold.set_attempt(task.attempt);
  fold.set_attempts(task.attempts);
  SetText(task.message, [&](const std::string& text) { fold.set_message(text); });
  SetText(task.from_job, [&](const std::string& text) { fold.set_from_job(text); });
  fold.set_reused(task.reused);
  if (context.brief || task.state != TaskState::kRunning || !task.live ||
      context.now - task.live->at > kLiveFor) {
    return;
  }
  const Live& live = *task.live;
  fold.mutable_progress()->set_done(std::max(task.epochs_done, live.epoch));
  v1::LiveFigures* const figures = fold.mutable_live();
  figures->set_step(live.step);
  figures->set_loss(live.loss);
  figures->set_learning_rate(live.learning_rate);
  figures->set_steps_per_s(live.steps_per_s);
  figures->set_samples_per_s(live.samples_per_s);
  figures->set_data_wait(live.data_wait);
  figures->set_precision(live.precision);
  figures->set_batch(live.batch);
  figures->set_steps_per_epoch(live.steps_per_epoch);
  figures->set_resolved_settings(live.resolved_settings);
}

v1::PredictionMember MemberToProto(const Member& member) {
  v1::PredictionMember to;
  to.set_fold(member.fold);
  to.set_trial(member.trial);
  to.set_seed(member.seed);
  to.set_kind(member.kind);
  to.set_attempt(member.attempt);
  to.set_complete(member.complete);
  to.set_score(member.score);
  if (member.step > 0) {
    to.set_epoch(member.best_epoch);
    to.set_step(member.step);
  }
  to.set_weight(member.weight);
  return to;
}

void SetQuantileScores(const std::vector<double>& levels, const QuantileScores& scores,
                       google::protobuf::RepeatedPtrField<v1::QuantileScore>* to) {
  const size_t known = std::min({levels.size(), scores.pinball.size(), scores.below.size()});
  for (size_t i = 0; i < known; ++i) {
    v1::QuantileScore* const score = to->Add();
    score->set_level(levels[i]);
    score->set_pinball(scores.pinball[i]);
    score->set_below(scores.below[i]);
  }
}

void SetPrediction(const Job& job, const JobContext& context, v1::Job* to) {
  const PublishedPrediction& prediction = *job.prediction;
  v1::Scores* const scores = to->mutable_scores();
  if (prediction.oof_score) scores->set_oof(*prediction.oof_score);
  scores->set_comparable(prediction.comparable);
  if (prediction.test_score) scores->set_test(*prediction.test_score);
  if (prediction.floor_score && !scores->has_floor()) scores->set_floor(*prediction.floor_score);
  const std::vector<double>& levels = prediction.quantiles.levels;
  SetQuantileScores(levels, prediction.quantile_scores, scores->mutable_quantiles());
  SetQuantileScores(levels, prediction.test_quantile_scores, scores->mutable_test_quantiles());
  to->set_quality(static_cast<v1::Quality>(prediction.quality));
  if (prediction.number == 0) return;  // no rows to predict
  v1::Prediction* const answer = to->mutable_predictions();
  answer->set_path(absl::StrCat(context.state_dir, "/", prediction.path));
  answer->set_rows(prediction.rows);
  answer->set_quality(static_cast<v1::Quality>(prediction.quality));
  std::set<int> folds;
  for (const Member& member : prediction.members) folds.insert(member.fold);
  answer->mutable_folds()->Assign(folds.begin(), folds.end());
  answer->set_number(prediction.number);
  *answer->mutable_at() = ToProto(prediction.at);
  answer->set_sha256(prediction.sha256);
  answer->set_bytes(prediction.bytes);
  for (const Member& member : prediction.members) *answer->add_members() = MemberToProto(member);
  if (prediction.floor_weight > 0) {
    v1::PredictionMember* const floor = answer->add_members();
    floor->set_fold(-1);
    floor->set_kind(job.floor_model);
    floor->set_weight(prediction.floor_weight);
  }
}

v1::AttemptSummary AttemptToProto(const Attempt& attempt) {
  v1::AttemptSummary summary;
  summary.set_id(attempt.id);
  summary.set_task(TaskName(attempt));
  summary.set_worker(attempt.worker);
  for (const GangPart& part : attempt.others) summary.add_other_workers(part.worker);
  SetTime(attempt.started_at, [&] { return summary.mutable_started_at(); });
  SetTime(attempt.ended_at, [&] { return summary.mutable_ended_at(); });
  summary.set_end_reason(static_cast<v1::AttemptEndReason>(attempt.end_reason));
  summary.set_message(attempt.message);
  if (attempt.first_step >= 0) summary.set_first_step(attempt.first_step);
  if (const facts::Resources& r = attempt.resources; !r.summary.empty()) {
    v1::Resources* const to = summary.mutable_resources();
    to->set_summary(r.summary);
    to->set_seconds(r.seconds);
    to->set_epochs(r.epochs);
    if (r.utilisation >= 0) to->set_utilisation(r.utilisation);
    to->set_advice(r.advice);
    to->set_cpu_s(r.cpu_s);
    if (r.energy_joules >= 0) to->set_energy_joules(r.energy_joules);
    to->set_peak_memory_bytes(r.peak_memory_bytes);
    to->set_peak_device_bytes(r.peak_device_bytes);
  }
  if (const facts::Transfers& t = attempt.transfers; t.fetched_bytes > 0 || t.sent_bytes > 0) {
    v1::Transfers* const to = summary.mutable_transfers();
    to->set_fetched_bytes(t.fetched_bytes);
    to->set_fetch_s(t.fetch_s);
    to->set_sent_bytes(t.sent_bytes);
    to->set_send_s(t.send_s);
  }
  return summary;
}

// The core knows no folders: they stand in the spec alone.
std::string ProgramResultsOf(const Job& job, const std::string& state_dir) {
  const auto spec = SpecFromJson(job.spec_json);
  return spec.ok() ? ProgramResultsDir(state_dir, job.id, spec->run().results()) : "";
}

}  // namespace

google::protobuf::Timestamp ToProto(absl::Time time) {
  google::protobuf::Timestamp to;
  const int64_t seconds = absl::ToUnixSeconds(time);  // rounded down, also before 1970
  to.set_seconds(seconds);
  to.set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds))));
  return to;
}

google::protobuf::Duration ToProto(absl::Duration duration) {
  google::protobuf::Duration to;
  const int64_t nanos = absl::ToInt64Nanoseconds(duration);
  to.set_seconds(nanos / 1'000'000'000);
  to.set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
  return to;
}

v1::Answer ToProto(const AnswerAt& at) {
  v1::Answer to;
  to.set_number(at.answer.number);
  to.set_at_s(at.at_s);
  to.set_quality(static_cast<v1::Quality>(at.answer.quality));
  if (at.answer.oof_score) to.set_oof(*at.answer.oof_score);
  to.set_comparable(at.answer.comparable);
  if (at.answer.test_score) to.set_test(*at.answer.test_score);
  to.set_models(at.answer.models);
  return to;
}

v1::Report ToProto(const JobReport& report) {
  v1::Report to;
  to.set_folds_asked(report.folds_asked);
  to.set_folds_planned(report.folds_planned);
  to.set_folds_done(report.folds_done);
  to.set_folds_partial(report.folds_partial);
  to.set_folds_reused(report.folds_reused);
  to.set_models_asked(report.models_asked);
  to.set_models_trained(report.models_trained);
  if (report.used_share) to.set_used_share(*report.used_share);
  to.set_revisions(report.revisions);
  if (report.utilisation) to.set_utilisation(*report.utilisation);
  to.set_peak_memory_bytes(report.peak_memory_bytes);
  to.set_peak_device_bytes(report.peak_device_bytes);
  if (report.energy_joules) to.set_energy_joules(*report.energy_joules);
  if (report.epoch_device_s) to.set_epoch_device_s(*report.epoch_device_s);
  if (report.epoch_joules) to.set_epoch_joules(*report.epoch_joules);
  to.set_epochs_asked(report.epochs_asked);
  to.set_epochs_planned(report.epochs_planned);
  to.set_epochs_done(report.epochs_done);
  to.set_queue_s(report.queue_s);
  to.set_prepare_s(report.prepare_s);
  to.set_probe_s(report.probe_s);
  to.set_train_s(report.train_s);
  to.set_validate_s(report.validate_s);
  to.set_predict_s(report.predict_s);
  to.set_device_s(report.device_s);
  to.mutable_cuts()->Assign(report.cuts.begin(), report.cuts.end());
  for (const AnswerAt& at : report.answers) *to.add_answers() = ToProto(at);
  for (const ColumnImportance& of : report.importance) {
    v1::ColumnImportance& column = *to.add_importance();
    column.set_column(of.column);
    column.set_drop(of.drop);
    if (of.error) column.set_error(*of.error);
    column.set_folds(of.folds);
  }
  if (!report.more) return to;
  v1::MoreTime* const more = to.mutable_more();
  *more->mutable_time() = ToProto(report.more->time);
  more->set_buys(report.more->buys);
  if (report.more->now) more->set_score_now(*report.more->now);
  if (report.more->low) more->set_score_low(*report.more->low);
  if (report.more->expected) more->set_score(*report.more->expected);
  if (report.more->high) more->set_score_high(*report.more->high);
  return to;
}

v1::Plan ToProto(const Plan& plan) {
  v1::Plan to;
  to.set_revision(plan.revision);
  to.set_folds(plan.folds);
  to.set_epochs(plan.epochs);
  to.set_models(plan.models);
  to.set_ranks(plan.ranks);
  to.set_parallel_folds(plan.parallel_folds);
  if (plan.step_s) to.set_step_s(*plan.step_s);
  if (plan.estimate) *to.mutable_estimate() = ToProto(*plan.estimate);
  *to.mutable_reserve() = ToProto(plan.reserve);
  SetTime(plan.at, [&] { return to.mutable_at(); });
  to.set_row_share(plan.row_share);
  return to;
}

v1::Decision ToProto(const Decision& decision) {
  v1::Decision to;
  *to.mutable_at() = ToProto(decision.at);
  to.set_rule(Name(decision.rule));
  to.set_cause(decision.cause);
  to.set_from(decision.from);
  to.set_to(decision.to);
  to.set_effect(decision.effect);
  return to;
}

v1::QuotaState ToProto(const QuotaState& state) {
  v1::QuotaState to;
  v1::Quota* const quota = to.mutable_quota();
  quota->mutable_subject()->set_owner(state.quota.subject.owner);
  quota->mutable_subject()->set_label(state.quota.subject.label);
  *quota->mutable_allowance() = ToProto(state.quota.allowance);
  *quota->mutable_period() = ToProto(state.quota.period);
  quota->set_rolling(state.quota.rolling);
  *quota->mutable_since() = ToProto(state.quota.since);
  to.set_used_s(state.used_s);
  to.set_left_s(state.left_s);
  SetTime(state.free_at, [&] { return to.mutable_free_at(); });
  to.set_warned_percent(state.warned_percent);
  return to;
}

v1::MetricPoint ToProto(int64_t sequence, const MetricPoint& point) {
  v1::MetricPoint to;
  to.set_sequence(sequence);
  *to.mutable_at() = ToProto(point.at);
  to.set_fold(point.fold);
  to.set_attempt(point.attempt);
  to.set_step(point.step);
  to.set_epoch(point.epoch);
  to.set_name(point.name);
  to.set_value(point.value);
  return to;
}

v1::Job ToProto(const Job& job, const JobContext& context) {
  v1::Job to;
  to.set_id(job.id);
  SetText(job.spec.name, [&](const std::string& text) { to.set_name(text); });
  to.set_owner(job.owner);
  to.set_state(static_cast<v1::JobState>(job.state));
  to.set_end_reason(static_cast<v1::JobEndReason>(job.end_reason));
  SetText(job.end_message, [&](const std::string& text) { to.set_end_message(text); });
  SetTime(job.accepted_at, [&] { return to.mutable_accepted_at(); });
  SetTime(job.started_at, [&] { return to.mutable_started_at(); });
  SetTime(job.deadline, [&] { return to.mutable_deadline(); });
  SetTime(job.finished_at, [&] { return to.mutable_finished_at(); });
  to.mutable_scores()->set_metric(job.spec.metric);
  if (job.floor_score) to.mutable_scores()->set_floor(*job.floor_score);
  if (job.prediction) SetPrediction(job, context, &to);
  for (const Task& task : job.tasks) {
    if (task.kind == TaskKind::kTrain) FillFold(task, context, *to.add_folds());
  }
  if (!job.plans.empty()) *to.mutable_plan() = ToProto(job.plans.back());
  if (!context.brief) {
    for (const Decision& decision : job.decisions) *to.add_decisions() = ToProto(decision);
    for (const Attempt& attempt : job.attempts) *to.add_attempts() = AttemptToProto(attempt);
  }
  to.set_pending_reason(static_cast<v1::PendingReason>(job.pending_reason));
  SetText(job.waits_for, [&](const std::string& text) { to.set_waits_for(text); });
  to.set_queue_position(job.queue_position);
  SetTime(job.expected_start, [&] { return to.mutable_expected_start(); });
  SetTime(job.estimated_finish, [&] { return to.mutable_estimated_finish(); });
  to.mutable_warnings()->Assign(job.warnings.begin(), job.warnings.end());
  to.mutable_labels()->insert(job.spec.labels.begin(), job.spec.labels.end());
  to.set_priority(job.spec.priority);
  to.set_version(job.version);
  to.set_train_rows(job.table.train_rows);
  to.set_test_rows(job.table.test_rows);
  if (!IsTerminal(job.state) && job.deadline != absl::InfiniteFuture()) {
    to.set_remaining_s(absl::ToDoubleSeconds(job.deadline - context.now));
  }
  SetText(job.spec.from, [&](const std::string& text) { to.set_from(text); });
  to.set_results_dir(absl::StrCat(context.state_dir, "/", JobDir(job.id)));
  SetText(job.spec.models_from, [&](const std::string& text) { to.set_models_from(text); });
  to.set_pinned(job.pinned);
  to.mutable_after()->Assign(job.after.begin(), job.after.end());
  if (job.after.empty()) *to.mutable_runnable_at() = ToProto(ClockStart(job));
  to.set_slots(job.spec.slots);
  SetText(job.spec.device, [&](const std::string& text) { to.set_device(text); });
  if (RunsProgram(job.spec)) {
    to.set_program_results(ProgramResultsOf(job, context.state_dir));
  }
  return to;
}

}  // namespace traind
