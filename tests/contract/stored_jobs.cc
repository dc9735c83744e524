#include "tests/contract/stored_jobs.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <optional>
#include <tuple>
#include <utility>

#include "server/domain/first_tasks.h"

namespace traind {
namespace {

template <typename T>
std::string Text(const std::optional<T>& value) {
  return value ? absl::StrCat(*value) : "none";
}

std::string Text(const QuantileScores& scores) {
  return absl::StrCat(" [", absl::StrJoin(scores.pinball, ","), " ",
                      absl::StrJoin(scores.below, ","), "]");
}

}  // namespace

std::string Text(const Member& m) {
  return absl::StrJoin(
      std::make_tuple(m.fold, m.attempt, m.complete, m.score, m.epochs_done, m.oof, m.oof_sha256,
                      m.test, m.test_sha256, m.trial, m.seed, m.kind),
      "|");
}
std::string Text(const Checkpoint& c) {
  return absl::StrJoin(
      std::make_tuple(c.attempt, c.fold, c.step, c.epoch, c.manifest, c.sha256, c.bytes,
                      c.best_metric, absl::FormatTime(c.at), c.trial, c.seed),
      "|");
}
Task& Fold(Job& job, int fold) { return job.tasks[1 + fold]; }

Checkpoint CheckpointOf(int64_t attempt, int fold, int64_t step) {
  Checkpoint c;
  c.attempt = attempt;
  c.fold = fold;
  c.step = step;
  c.epoch = 1.5;
  c.manifest = absl::StrCat("jobs/a/attempts/", attempt, "/checkpoint-", step, ".json");
  c.sha256 = "feed";
  c.bytes = 1234;
  c.best_metric = 0.875;
  c.at = kStart + absl::Seconds(step);
  return c;
}

Member MemberOf(int64_t attempt, int fold) {
  Member m;
  m.fold = fold;
  m.attempt = attempt;
  m.complete = true;
  m.score = 0.9;
  m.epochs_done = 12;
  m.oof = absl::StrCat("attempts/", attempt, "/oof.npy");
  m.oof_sha256 = "aa";
  m.test = absl::StrCat("attempts/", attempt, "/test.npy");
  m.test_sha256 = "bb";
  return m;
}

Job Started(const Job& job, int fold, int64_t attempt) {
  Job next = Next(job);
  next.state = JobState::kRunning;
  Fold(next, fold).state = TaskState::kRunning;
  Fold(next, fold).attempt = attempt;
  ++Fold(next, fold).attempts;
  Attempt& a = next.attempts.emplace_back();
  a.id = attempt;
  a.fold = fold;
  a.worker = "w1";
  a.slots = {0, 1};
  a.started_at = kStart + absl::Seconds(attempt);
  return next;
}

MetricPoint Metric(const std::string& job, int64_t step) {
  MetricPoint p;
  p.job = job;
  p.at = kStart;
  p.step = step;
  p.epoch = 0.25;
  p.name = "train_loss";
  p.value = 1.0 / static_cast<double>(step);
  return p;
}

Job Ended(const Job& job, JobState state) {
  Job next = Next(job);
  next.state = state;
  next.end_reason = JobEndReason::kCompleted;
  next.end_message = "done";
  next.finished_at = kStart + absl::Minutes(1);
  return next;
}

Job FullJob() {
  Job job = NewJob("full-1");
  job.spec_text = "name: full\n# it\xe2\x80\x99s \"quoted\"\n";
  job.spec.labels = {{"team", "a"}, {"stage", "prod"}};
  job.spec.budget = absl::Seconds(90);
  job.spec.deadline = kStart + absl::Hours(2);
  job.spec.policy = Policy::kFixed;
  job.spec.shares = {0.7, 0.3, 0.1, 0.6, 1.5, absl::Milliseconds(700)};
  job.spec.subsample = true;
  job.spec.speed_key = "fast";
  job.spec.cache_key = "key";
  job.spec.cache_read = true;
  job.spec.from = "older-1";
  job.spec.models_from = "older-2";
  job.pinned = true;
  job.spec.seeds = 3;
  job.spec.trials = {{"trees", "lightgbm", 20, 1}, {"net-2", "mlp", 7, 3}};
  job.spec.trials[1].settings =
      std::make_shared<const Settings>(Settings{{"model.mlp.hidden", "[64, 32]"}});
  job.spec.search = {"tpe", {{"model.mlp.hidden", "choice([8], [64, 32])"}}, 17};
  job.publish_s = 0.75;
  job.quota_reached = true;
  job.after = {"before-1", "before-2"};
  job.spec.after_any_end = true;
  job.waited = absl::Milliseconds(1250);
  job.spec.device = "cuda";
  job.spec.constraints = {{"rack=a", "zone=x"}, "h100", int64_t{40} << 30};
  job.spec.precision = "bf16";
  job.spec.batch = 64;
  job.spec.priority = -3;
  job.spec.higher_is_better = false;
  job.warnings = {"column x is ignored", "another, \"odd\" one"};
  job.deadline = kStart + absl::Seconds(90);
  job = Started(job, 0, 7);
  job.started_at = kStart + absl::Milliseconds(250);
  job.finish_requested = true;
  job.cancel_requested = true;
  job.table = {"cache/k.table", "c0ffee", 1000, 100, 9, 3};
  job.floor_model = "logistic";
  job.floor_score = 0.71;
  Task& task = Fold(job, 0);
  task.failures = 1;
  task.losses = 2;
  task.not_before = kStart + absl::Seconds(3);
  task.epochs_planned = 20;
  task.epochs_done = 12.5;
  task.row_share = 0.35;
  task.retry_batch = 16;
  task.score = 0.93;
  task.member = MemberOf(7, 0);
  task.checkpoint = CheckpointOf(7, 0, 40);
  task.message = "stopped by the clock";
  task.measured = {0.001, 0.002, 0.3, 0.4, 5.5, 321};
  task.spent = {0.5, 1.5, 2.5};
  task.from_job = "older-1";
  task.reused = true;
  Task& extra = job.tasks.emplace_back();
  extra.fold = 0;
  extra.trial = 1;
  extra.seed = 2;
  extra.attempt = 8;
  extra.member = MemberOf(8, 0);
  extra.member->trial = 1;
  extra.member->seed = 2;
  extra.member->kind = "mlp";
  extra.checkpoint = CheckpointOf(8, 0, 50);
  extra.checkpoint->trial = 1;
  extra.checkpoint->seed = 2;
  Attempt second_model = job.attempts.back();
  second_model.id = 8;
  second_model.trial = 1;
  second_model.seed = 2;
  job.attempts.push_back(second_model);
  Attempt& attempt = job.attempts.front();
  attempt.ended_at = kStart + absl::Seconds(30);
  attempt.end_reason = AttemptEndReason::kStoppedInTime;
  attempt.message = "signal 9";
  attempt.first_step = 320;
  attempt.resources = {"2 x cpu", 28.5, 12, 0.75, "slow", 40, 500, 1 << 20, 1 << 21};
  attempt.columns_told = true;
  attempt.transfers = {1 << 22, 2.5, 1 << 23, 1.25};
  Plan plan;
  plan.revision = 1;
  plan.folds = 2;
  plan.epochs = 20;
  plan.row_share = 0.4;
  plan.step_s = 0.001;
  plan.estimate = absl::Seconds(44);
  plan.reserve = absl::Seconds(9);
  plan.at = kStart;
  job.plans = {plan, plan};
  Plan& second = job.plans.back();
  second = Plan();
  second.revision = 2;
  second.folds = 2;
  second.epochs = 12;
  second.models = 5;
  second.ranks = 2;
  second.parallel_folds = 3;
  second.reserve = absl::Seconds(8);
  second.at = kStart + absl::Seconds(1);
  job.decisions = {
      {kStart, DecisionRule::kB2, "estimate 100 s", "5 folds", "3 folds"},
      {kStart + absl::Seconds(1), DecisionRule::kUser, "Finish", "train", "predict", "sooner"}};
  Decision& retry = job.decisions.emplace_back();
  retry.at = kStart + absl::Seconds(2);
  retry.rule = DecisionRule::kRetry;
  retry.attempts = {7, 12};
  retry.from = AttemptsText(retry.attempts);
  Decision& note = job.decisions.emplace_back();
  note.at = kStart + absl::Seconds(3);
  note.rule = DecisionRule::kB9;
  note.trial_note = {TrialNote::kWorse, 4};
  note.to = TrialNoteText(note.trial_note);
  PublishedPrediction p;
  p.number = 3;
  p.path = "jobs/full-1/prediction-3/predictions.csv";
  p.sha256 = "abc";
  p.bytes = 99;
  p.rows = 100;
  p.quality = Quality::kDegraded;
  p.members = {MemberOf(7, 0), *job.tasks.back().member};
  p.left_out = {1};
  p.oof_score = 0.92;
  p.comparable = true;
  p.test_score = 0.91;
  p.floor_score = 0.7;
  p.floor_weight = 0.25;
  p.quantiles.levels = {0.1, 0.9};
  p.quantile_scores = {{0.5, 0.25}, {0.125, 0.875}};
  p.test_quantile_scores = {{0.75, 0.375}, {0.25, 0.9375}};
  p.at = kStart + absl::Seconds(20);
  job.prediction = p;
  return job;
}

Job NewJob(const std::string& id, int folds) {
  Job job;
  job.id = id;
  job.spec.name = id.substr(0, id.find('-'));
  job.spec.metric = "accuracy";
  job.spec.folds = folds;
  job.spec.train_bytes = 4096;
  job.spec_json = absl::StrCat("{\"name\":\"", job.spec.name, "\"}");
  job.spec_sha256 = "5ec";
  job.asked_sha256 = "a5c";
  job.accepted_at = kStart;
  job.version = 1;
  job.tasks = FirstTasks(job.spec);
  return job;
}

Job Next(const Job& job) {
  Job next = job;
  ++next.version;
  return next;
}

Mutations Change(std::vector<Job> jobs) {
  Mutations m;
  m.durable = true;
  for (Job& job : jobs) m.jobs.push_back(std::make_shared<const Job>(std::move(job)));
  return m;
}

std::string Describe(const Job& job) {
  std::string text =
      absl::StrCat(job.id, " owner=", job.owner, " request=", job.request_id,
                   " spec=", job.spec_sha256, " ", job.asked_sha256, " ", job.spec_json, " ",
                   job.spec_text, " state=", static_cast<int>(job.state),
                   " end=", static_cast<int>(job.end_reason), " ", job.end_message, " at ",
                   absl::FormatTime(job.accepted_at), " ", absl::FormatTime(job.started_at), " ");
  absl::StrAppend(&text, absl::FormatTime(job.deadline), " ", absl::FormatTime(job.finished_at),
                  job.finish_requested, job.cancel_requested, " floor=", job.floor_model, " ",
                  Text(job.floor_score), " warnings=", absl::StrJoin(job.warnings, ";"),
                  " version=", job.version, "\n");
  const Spec& s = job.spec;
  absl::StrAppend(&text, "spec ", s.name, " ", s.metric, s.higher_is_better, " ", s.folds, " ",
                  s.epochs, " ", s.patience, " ", s.slots, " ", s.device, " ", s.batch, " ");
  absl::StrAppend(&text, s.precision, " ", absl::FormatDuration(s.checkpoint_every), " ",
                  s.priority, " ", absl::StrJoin(s.labels, ",", absl::PairFormatter("=")), " ",
                  s.has_test, " ", s.train_bytes, " ", s.test_bytes, " ");
  absl::StrAppend(
      &text, s.budget ? absl::FormatDuration(*s.budget) : "none", " ",
      s.deadline ? absl::FormatTime(*s.deadline) : "none", " ", static_cast<int>(s.policy), " ",
      s.shares.plan, " ", s.shares.first_fold, " ", s.shares.reserve, " ", s.shares.stop, " ",
      s.shares.reserve_margin, " ", absl::FormatDuration(s.shares.reserve_least), " ", s.subsample,
      s.speed_key, " ", s.cache_key, s.cache_read, " ", s.from, " ", s.seeds, " ", job.publish_s,
      job.quota_reached, " ", s.models_from, " ", job.pinned, " after ",
      absl::StrJoin(job.after, ","), s.after_any_end, absl::FormatDuration(job.waited), "\n");
  absl::StrAppend(&text, "constraints ", absl::StrJoin(s.constraints.labels, ","), " ",
                  s.constraints.gpu, " ", s.constraints.gpu_memory_bytes, "\n");
  for (const Trial& trial : s.trials) {
    absl::StrAppend(&text, "trial ", trial.name, " ", trial.kind, " ", trial.epochs, " ",
                    trial.patience, "\n");
    if (trial.settings == nullptr) continue;
    absl::StrAppend(&text, absl::StrJoin(*trial.settings, " ", absl::PairFormatter("=")), "\n");
  }
  absl::StrAppend(&text, "search ", s.search.method, " ", s.search.seed, " ",
                  absl::StrJoin(s.search.space, " ", absl::PairFormatter("=")), "\n");
  const TableInfo& t = job.table;
  absl::StrAppend(&text, "table ", t.table, " ", t.content_sha256, " ", t.train_rows, " ",
                  t.test_rows, " ", t.features, " ", t.classes, "\n");
  for (const Task& task : job.tasks) {
    absl::StrAppend(&text, "task ", static_cast<int>(task.kind), " ", task.fold, " ", task.seed,
                    " ", task.trial, " ", static_cast<int>(task.state), " ", task.attempt, " ",
                    task.attempts, " ", task.failures, " ", task.losses, " ",
                    absl::FormatTime(task.not_before));
    absl::StrAppend(&text, " ", task.epochs_planned, " ", task.epochs_done, " ", Text(task.score),
                    " ", task.member ? Text(*task.member) : "none", " ",
                    task.checkpoint ? Text(*task.checkpoint) : "none", " ", task.message);
    const Measured& m = task.measured;
    absl::StrAppend(&text, " ", m.step_s, " ", m.step_p90_s, " ", m.evaluate_s, " ", m.predict_s,
                    " ", m.epoch_s, " ", m.steps_per_epoch, " ", task.spent.probe_s, " ",
                    task.spent.validate_s, " ", task.spent.predict_s, " ", task.from_job,
                    task.reused, " ", task.row_share, " ", task.retry_batch, "\n");
  }
  for (const Plan& p : job.plans) {
    absl::StrAppend(&text, "plan ", p.revision, " ", p.folds, " ", p.epochs, " ", p.models, " ",
                    p.ranks, " ", p.parallel_folds, " ", Text(p.step_s), " ",
                    p.estimate ? absl::FormatDuration(*p.estimate) : "none", " ",
                    absl::FormatDuration(p.reserve), " ", absl::FormatTime(p.at), " ", p.row_share,
                    "\n");
  }
  for (const Decision& d : job.decisions) {
    absl::StrAppend(&text, "decision ", absl::FormatTime(d.at), " ", Name(d.rule), " ", d.cause,
                    " ", d.from, " ", d.to, " ", d.effect, " ", absl::StrJoin(d.attempts, ","), " ",
                    static_cast<int>(d.trial_note.kind), d.trial_note.number, "\n");
  }
  for (const Attempt& a : job.attempts) {
    absl::StrAppend(&text, "attempt ", a.id, " ", static_cast<int>(a.kind), " ", a.fold, " ",
                    a.trial, " ", a.seed, " ", a.worker, " ", absl::StrJoin(a.slots, ","), " ");
    absl::StrAppend(&text, absl::FormatTime(a.started_at), " ", absl::FormatTime(a.ended_at), " ",
                    static_cast<int>(a.end_reason), " ", a.message, " ", a.first_step);
    const facts::Resources& r = a.resources;
    absl::StrAppend(&text, " ", r.summary, " ", r.seconds, " ", r.epochs, " ", r.utilisation, " ",
                    r.advice);
    absl::StrAppend(&text, " ", r.cpu_s, " ", r.energy_joules, " ", r.peak_memory_bytes, " ",
                    r.peak_device_bytes, " ", a.columns_told);
    const facts::Transfers& t = a.transfers;
    absl::StrAppend(&text, " ", t.fetched_bytes, " ", t.fetch_s, " ", t.sent_bytes, " ", t.send_s,
                    "\n");
  }
  if (job.prediction) {
    const PublishedPrediction& p = *job.prediction;
    absl::StrAppend(&text, "prediction ", p.number, " ", p.path, " ", p.sha256, " ", p.bytes, " ",
                    p.rows, " ", static_cast<int>(p.quality), " ", absl::StrJoin(p.left_out, ","),
                    " ", Text(p.oof_score), p.comparable, " ");
    absl::StrAppend(&text, Text(p.test_score), " ", Text(p.floor_score), " ",
                    absl::FormatTime(p.at), " floor ", p.floor_weight, " levels ",
                    absl::StrJoin(p.quantiles.levels, ","), Text(p.quantile_scores),
                    Text(p.test_quantile_scores));
    for (const Member& m : p.members) absl::StrAppend(&text, " {", Text(m), "}");
  }
  return text;
}

}  // namespace traind
