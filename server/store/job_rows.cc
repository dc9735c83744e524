#include "server/store/job_rows.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <utility>

#include "common/base/status_macros.h"
#include "server/domain/first_tasks.h"
#include "server/store/row_json.h"
#include "server/store/spec_text.h"

namespace traind {
namespace {

using nlohmann::json;
using sqlite::Connection;
using sqlite::Query;

// Each table's columns are listed once, for reading (T), writing and comparing (const T).

template <typename T>
auto FixedColumns(T& job) {
  auto& s = job.spec;
  return std::tie(job.id, job.owner, job.request_id, s.name, job.spec_sha256, job.spec_text,
                  job.accepted_at, s.metric, s.higher_is_better, s.folds, s.epochs, s.patience,
                  s.slots, s.device, s.batch, s.precision, s.checkpoint_every, s.has_test,
                  s.train_bytes, s.test_bytes, s.budget, s.deadline, s.policy, s.shares.plan,
                  s.shares.first_fold, s.shares.reserve, s.shares.stop, s.shares.reserve_margin,
                  s.shares.reserve_least, s.subsample, s.speed_key, s.cache_key, s.cache_read,
                  s.from, s.seeds, s.models_from, job.asked_sha256, s.after_any_end);
}

template <typename T>
auto ChangingColumns(T& job) {
  return std::tie(job.state, job.end_reason, job.end_message, job.started_at, job.deadline,
                  job.finished_at, job.finish_requested, job.cancel_requested, job.floor_model,
                  job.floor_score, job.spec.priority, job.publish_s, job.quota_reached, job.pinned,
                  job.waited);
}

template <typename T>
auto TableColumns(T& table) {
  return std::tie(table.table, table.content_sha256, table.train_rows, table.test_rows,
                  table.features, table.classes);
}

template <typename T>
auto TaskColumns(T& task) {
  auto& m = task.measured;
  return std::tie(task.kind, task.fold, task.trial, task.state, task.attempt, task.attempts,
                  task.failures, task.losses, task.not_before, task.epochs_planned,
                  task.epochs_done, task.score, task.message, m.step_s, m.step_p90_s, m.evaluate_s,
                  m.predict_s, m.epoch_s, m.steps_per_epoch, task.spent.probe_s,
                  task.spent.validate_s, task.spent.predict_s, task.from_job, task.reused,
                  task.row_share, task.retry_batch, task.seed);
}

template <typename T>
auto CheckpointColumns(T& c) {
  return std::tie(c.attempt, c.step, c.fold, c.epoch, c.manifest, c.sha256, c.bytes, c.best_metric,
                  c.at, c.seed, c.trial);
}

// Besides its rule, whose name is stored.
template <typename T>
auto DecisionColumns(T& d) {
  return std::tie(d.at, d.cause, d.from, d.to, d.effect);
}

template <typename T>
auto PlanColumns(T& p) {
  return std::tie(p.revision, p.folds, p.epochs, p.ranks, p.parallel_folds, p.step_s, p.estimate,
                  p.reserve, p.at, p.row_share, p.models);
}

template <typename T>
auto AttemptColumns(T& a) {
  return std::tie(a.id, a.kind, a.fold, a.worker, a.started_at, a.ended_at, a.end_reason, a.message,
                  a.seed, a.trial, a.first_step, a.resources.summary, a.resources.seconds,
                  a.resources.epochs, a.resources.utilisation, a.resources.advice,
                  a.resources.cpu_s, a.resources.energy_joules, a.resources.peak_memory_bytes,
                  a.resources.peak_device_bytes, a.columns_told, a.transfers.fetched_bytes,
                  a.transfers.fetch_s, a.transfers.sent_bytes, a.transfers.send_s);
}

template <typename T>
auto PredictionColumns(T& p) {
  return std::tie(p.number, p.path, p.sha256, p.bytes, p.rows, p.quality, p.oof_score, p.comparable,
                  p.test_score, p.floor_score, p.at, p.floor_weight);
}

template <typename T>
auto MemberColumns(T& m) {
  return std::tie(m.fold, m.attempt, m.complete, m.score, m.epochs_done, m.oof, m.oof_sha256,
                  m.test, m.test_sha256, m.best_epoch, m.step, m.weight, m.trial, m.seed, m.kind);
}

template <typename Columns>
void Read(Query& query, Columns columns) {
  std::apply([&](auto&... column) { query.Read(column...); }, columns);
}
template <typename Columns>
void ReadMore(Query& query, Columns columns) {
  std::apply([&](auto&... column) { query.ReadMore(column...); }, columns);
}
template <typename Columns>
void Bind(Query& query, Columns columns) {
  std::apply([&](const auto&... column) { query.Bind(column...); }, columns);
}

absl::Status Finish(Query& query) {
  while (query.Next()) {
  }
  return query.status();
}

std::string MemberText(const Task& task) {
  return task.member ? Dump(MemberJson(*task.member)) : std::string();
}

bool SameMember(const Boxed<Member>& a, const Boxed<Member>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return MemberColumns(*a) == MemberColumns(*b);
}

bool SameTask(const Task& a, const Task& b) {
  const bool same_checkpoint =
      a.checkpoint && b.checkpoint
          ? CheckpointColumns(*a.checkpoint) == CheckpointColumns(*b.checkpoint)
          : a.checkpoint.has_value() == b.checkpoint.has_value();
  return same_checkpoint && TaskColumns(a) == TaskColumns(b) && SameMember(a.member, b.member);
}

bool SameQuantileScores(const PublishedPrediction& a, const PublishedPrediction& b) {
  return a.quantiles.levels == b.quantiles.levels && a.quantile_scores == b.quantile_scores &&
         a.test_quantile_scores == b.test_quantile_scores;
}

bool SamePrediction(const std::optional<PublishedPrediction>& a,
                    const std::optional<PublishedPrediction>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  if (PredictionColumns(*a) != PredictionColumns(*b) || a->left_out != b->left_out ||
      !SameQuantileScores(*a, *b) || a->members.size() != b->members.size()) {
    return false;
  }
  for (size_t i = 0; i < a->members.size(); ++i) {
    if (MemberColumns(a->members[i]) != MemberColumns(b->members[i])) return false;
  }
  return true;
}

// ---- reading ------------------------------------------------------------------

absl::Status ReadLabels(Connection& db, int64_t number, Job& job) {
  Query q = db.Select("SELECT key, value FROM job_labels WHERE job = ?", number);
  while (q.Next()) {
    std::string key, value;
    q.Read(key, value);
    job.spec.labels.emplace(std::move(key), std::move(value));
  }
  return q.status();
}

// A row with more folds is damaged.
constexpr int kMostFolds = 10'000;

// Returns the task that a row with this position describes: one that the Job began with, or a new
// one at the end.
absl::StatusOr<Task*> TaskAt(int64_t position, Job& job) {
  const auto tasks = static_cast<int64_t>(job.tasks.size());
  if (position < 0 || position > tasks) {
    return absl::DataLossError(
        absl::StrCat("tasks.position of job ", job.id, ": ", position, " of ", tasks));
  }
  if (position == tasks) return &job.tasks.emplace_back();
  job.tasks[position] = Task();
  return &job.tasks[position];
}

absl::Status ReadTasks(Connection& db, int64_t number, Job& job) {
  if (job.spec.folds < 0 || job.spec.folds > kMostFolds) {
    return absl::DataLossError(absl::StrCat("jobs.folds of job ", job.id, ": ", job.spec.folds));
  }
  job.tasks = FirstTasks(job.spec);
  Query q = db.Select(
      "SELECT position, t.kind, t.fold, t.trial, state, t.attempt, attempts, failures, losses, "
      "not_before_ms, epochs_planned, epochs_done, score, message, step_s, step_p90_s, evaluate_s, "
      "predict_s, epoch_s, steps_per_epoch, probe_s, validate_all_s, predict_all_s, from_job, "
      "reused, row_share, retry_batch, t.seed, member_json, c.attempt, c.step, c.fold, c.epoch, "
      "c.manifest, c.sha256, c.bytes, c.best_metric, c.at_ms, c.seed, c.trial "
      "FROM tasks t LEFT JOIN checkpoints c ON c.job = t.job AND c.attempt = t.checkpoint_attempt "
      "AND c.step = t.checkpoint_step "
      "WHERE t.job = ? ORDER BY t.position",
      number);
  while (q.Next()) {
    int64_t position = 0;
    q.Read(position);
    ASSIGN_OR_RETURN(Task* const row, TaskAt(position, job));
    Task& task = *row;
    ReadMore(q, TaskColumns(task));
    std::string member;
    q.ReadMore(member);
    if (!member.empty()) {
      RETURN_IF_ERROR(Parse(member, "tasks.member_json",
                            [&](const json& j) { task.member = MemberFromJson(j); }));
    }
    Checkpoint checkpoint;
    ReadMore(q, CheckpointColumns(checkpoint));
    if (checkpoint.attempt > 0) task.checkpoint = std::move(checkpoint);
  }
  return q.status();
}

absl::Status ReadPlans(Connection& db, int64_t number, Job& job) {
  Query q = db.Select(
      "SELECT revision, folds, epochs, ranks, parallel_folds, step_s, estimate_ms, reserve_ms, "
      "at_ms, row_share, models FROM plans WHERE job = ? ORDER BY position",
      number);
  while (q.Next()) Read(q, PlanColumns(job.plans.emplace_back()));
  return q.status();
}

absl::Status ReadDecisions(Connection& db, int64_t number, Job& job) {
  Query q = db.Select(
      "SELECT rule, at_ms, cause, from_text, to_text, effect FROM decisions WHERE job = ? "
      "ORDER BY position",
      number);
  std::string rule;
  while (q.Next()) {
    Decision& decision = job.decisions.emplace_back();
    q.Read(rule);
    ReadMore(q, DecisionColumns(decision));
    decision.rule = DecisionRuleByName(rule);
    ReadTexts(decision);
  }
  return q.status();
}

// A list of all slots: a number is one of the Attempt's own Worker, a pair one of another Worker,
// which it names.
json SlotsToJson(const Attempt& attempt) {
  json list = attempt.slots;
  for (const GangPart& part : attempt.others) {
    for (const int slot : part.slots) list.push_back(json::array({part.worker, slot}));
  }
  return list;
}

void ReadSlots(const json& list, Attempt& attempt) {
  for (const json& slot : list) {
    if (!slot.is_array()) {
      attempt.slots.push_back(slot.get<int>());
      continue;
    }
    const auto worker = slot.at(0).get<std::string>();
    if (attempt.others.empty() || attempt.others.back().worker != worker) {
      attempt.others.push_back({worker, {}});
    }
    attempt.others.back().slots.push_back(slot.at(1).get<int>());
  }
}

absl::Status ReadAttempts(Connection& db, int64_t number, Job& job) {
  Query q = db.Select(
      "SELECT id, kind, fold, worker, started_at_ms, ended_at_ms, end_reason, message, seed, "
      "trial, first_step, resources, measured_s, measured_epochs, utilisation, advice, cpu_s, "
      "energy_joules, peak_memory_bytes, peak_device_bytes, columns_told, fetched_bytes, fetch_s, "
      "sent_bytes, send_s, slots_json "
      "FROM attempts WHERE job = ? ORDER BY position",
      number);
  while (q.Next()) {
    Attempt& attempt = job.attempts.emplace_back();
    Read(q, AttemptColumns(attempt));
    std::string slots;
    q.ReadMore(slots);
    RETURN_IF_ERROR(
        Parse(slots, "attempts.slots_json", [&](const json& j) { ReadSlots(j, attempt); }));
  }
  return q.status();
}

absl::Status ReadPrediction(Connection& db, int64_t number, int prediction, Job& job) {
  Query q = db.Select(
      "SELECT number, path, sha256, bytes, rows, quality, oof_score, comparable, test_score, "
      "floor_score, at_ms, floor_weight, members_json, left_out_json, quantile_scores_json "
      "FROM predictions WHERE job = ? "
      "AND number = ?",
      number, prediction);
  if (q.Next()) {
    PublishedPrediction& p = job.prediction.emplace();
    Read(q, PredictionColumns(p));
    std::string members, left_out, quantile_scores;
    q.ReadMore(members, left_out, quantile_scores);
    RETURN_IF_ERROR(Parse(members, "predictions.members_json", [&](const json& j) {
      for (const json& member : j) p.members.push_back(MemberFromJson(member));
    }));
    RETURN_IF_ERROR(Parse(left_out, "predictions.left_out_json",
                          [&](const json& j) { p.left_out = j.get<std::vector<int>>(); }));
    if (!quantile_scores.empty()) {
      RETURN_IF_ERROR(Parse(quantile_scores, "predictions.quantile_scores_json",
                            [&](const json& j) { ReadQuantileScores(j, p); }));
    }
  }
  return q.status();
}

// ---- writing ------------------------------------------------------------------

absl::Status WriteState(Connection& db, int64_t number, const Job& job) {
  Query q = db.Prepare(
      "UPDATE jobs SET state = ?, end_reason = ?, end_message = ?, started_at_ms = ?, "
      "deadline_ms = ?, finished_at_ms = ?, finish_requested = ?, cancel_requested = ?, "
      "floor_model = ?, floor_score = ?, priority = ?, publish_s = ?, quota_reached = ?, pinned = "
      "?, waited_ms = ?, "
      "warnings_json = ?, after_json = ?, prediction_number = ?, version = ? WHERE number = ?");
  const std::string warnings = ListText(job.warnings), after = ListText(job.after);
  std::optional<int> prediction;
  if (job.prediction) prediction = job.prediction->number;
  Bind(q, ChangingColumns(job));
  q.Bind(warnings, after, prediction, job.version, number);
  return Finish(q);
}

bool SameSettings(const std::vector<Trial>& a, const std::vector<Trial>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(),
      [](const Trial& one, const Trial& other) { return one.settings == other.settings; });
}

absl::Status WriteTrials(Connection& db, int64_t number, const std::vector<Trial>& trials) {
  return db.Run("UPDATE jobs SET trials_json = ? WHERE number = ?", Dump(TrialsJson(trials)),
                number);
}

absl::Status InsertLabels(Connection& db, int64_t number, const Job& job) {
  for (const auto& [key, value] : job.spec.labels) {
    RETURN_IF_ERROR(
        db.Run("INSERT INTO job_labels(job, key, value) VALUES(?, ?, ?)", number, key, value));
  }
  return absl::OkStatus();
}

absl::Status WriteLabels(Connection& db, int64_t number, const Job& job) {
  RETURN_IF_ERROR(db.Run("DELETE FROM job_labels WHERE job = ?", number));
  return InsertLabels(db, number, job);
}

absl::Status WriteArtifact(Connection& db, int64_t number, const std::string& path,
                           const std::string& sha256, std::optional<int64_t> bytes,
                           std::optional<int> fold, std::optional<int64_t> attempt) {
  if (path.empty()) return absl::OkStatus();
  return db.Run(
      "INSERT OR REPLACE INTO artifacts(job, path, sha256, bytes, fold, attempt) "
      "VALUES(?, ?, ?, ?, ?, ?)",
      number, path, sha256, bytes, fold, attempt);
}

absl::Status WriteTask(Connection& db, int64_t number, int position, const Task& task) {
  const std::string member = MemberText(task);
  std::optional<int64_t> checkpoint_attempt, checkpoint_step;
  if (task.checkpoint) {
    RETURN_IF_ERROR(WriteCheckpoint(db, number, *task.checkpoint));
    checkpoint_attempt = task.checkpoint->attempt;
    checkpoint_step = task.checkpoint->step;
  }
  Query q = db.Prepare(
      "INSERT OR REPLACE INTO tasks(kind, fold, trial, state, attempt, attempts, failures, losses, "
      "not_before_ms, epochs_planned, epochs_done, score, message, step_s, step_p90_s, "
      "evaluate_s, predict_s, epoch_s, steps_per_epoch, probe_s, validate_all_s, predict_all_s, "
      "from_job, reused, row_share, retry_batch, seed, member_json, checkpoint_attempt, "
      "checkpoint_step, job, position) "
      "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
      "?, ?, ?, ?)");
  Bind(q, TaskColumns(task));
  q.Bind(member, checkpoint_attempt, checkpoint_step, number, position);
  return Finish(q);
}

absl::Status WriteTasks(Connection& db, int64_t number, const Job* before, const Job& after) {
  const std::vector<Task> known = before ? std::vector<Task>() : FirstTasks(after.spec);
  const std::vector<Task>& olds = before ? before->tasks : known;
  for (size_t i = 0; i < after.tasks.size(); ++i) {
    const Task* old = i < olds.size() ? &olds[i] : nullptr;
    const Task& task = after.tasks[i];
    if (old && SameTask(*old, task)) continue;
    RETURN_IF_ERROR(WriteTask(db, number, static_cast<int>(i), task));
    if (!task.member || (old && SameMember(old->member, task.member))) continue;
    const Member& m = *task.member;
    RETURN_IF_ERROR(WriteArtifact(db, number, m.oof, m.oof_sha256, {}, m.fold, m.attempt));
    RETURN_IF_ERROR(WriteArtifact(db, number, m.test, m.test_sha256, {}, m.fold, m.attempt));
  }
  return absl::OkStatus();
}

absl::Status WritePlans(Connection& db, int64_t number, const Job* before, const Job& after) {
  for (size_t i = before ? before->plans.size() : 0; i < after.plans.size(); ++i) {
    Query q = db.Prepare(
        "INSERT INTO plans(revision, folds, epochs, ranks, parallel_folds, step_s, estimate_ms, "
        "reserve_ms, at_ms, row_share, models, job, position) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
        "?, ?, ?)");
    Bind(q, PlanColumns(after.plans[i]));
    q.Bind(number, i);
    RETURN_IF_ERROR(Finish(q));
  }
  return absl::OkStatus();
}

absl::Status WriteDecisions(Connection& db, int64_t number, const Job* before, const Job& after) {
  for (size_t i = before ? before->decisions.size() : 0; i < after.decisions.size(); ++i) {
    Query q = db.Prepare(
        "INSERT INTO decisions(rule, at_ms, cause, from_text, to_text, effect, job, position) "
        "VALUES(?, ?, ?, ?, ?, ?, ?, ?)");
    const std::string rule = Name(after.decisions[i].rule);
    q.Bind(rule);
    Bind(q, DecisionColumns(after.decisions[i]));
    q.Bind(number, i);
    RETURN_IF_ERROR(Finish(q));
  }
  return absl::OkStatus();
}

absl::Status WriteAttempts(Connection& db, int64_t number, const Job* before, const Job& after) {
  for (size_t i = 0; i < after.attempts.size(); ++i) {
    const Attempt& attempt = after.attempts[i];
    if (before && i < before->attempts.size()) {
      const Attempt& old = before->attempts[i];
      const bool same = AttemptColumns(old) == AttemptColumns(attempt) &&
                        old.slots == attempt.slots && old.others == attempt.others;
      if (same) continue;
    }
    const std::string slots = Dump(SlotsToJson(attempt));
    Query q = db.Prepare(
        "INSERT INTO attempts(id, kind, fold, worker, started_at_ms, ended_at_ms, end_reason, "
        "message, seed, trial, first_step, resources, measured_s, measured_epochs, utilisation, "
        "advice, cpu_s, energy_joules, peak_memory_bytes, peak_device_bytes, columns_told, "
        "fetched_bytes, fetch_s, sent_bytes, send_s, slots_json, job, position) "
        "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
        "?) "
        "ON CONFLICT(job, position) DO UPDATE SET worker = excluded.worker, "
        "ended_at_ms = excluded.ended_at_ms, end_reason = excluded.end_reason, "
        "message = excluded.message, first_step = excluded.first_step, "
        "resources = excluded.resources, measured_s = excluded.measured_s, "
        "measured_epochs = excluded.measured_epochs, utilisation = excluded.utilisation, "
        "advice = excluded.advice, cpu_s = excluded.cpu_s, "
        "energy_joules = excluded.energy_joules, "
        "peak_memory_bytes = excluded.peak_memory_bytes, "
        "peak_device_bytes = excluded.peak_device_bytes, "
        "columns_told = excluded.columns_told, "
        "fetched_bytes = excluded.fetched_bytes, fetch_s = excluded.fetch_s, "
        "sent_bytes = excluded.sent_bytes, send_s = excluded.send_s, "
        "slots_json = excluded.slots_json");
    Bind(q, AttemptColumns(attempt));
    q.Bind(slots, number, i);
    RETURN_IF_ERROR(Finish(q));
  }
  return absl::OkStatus();
}

absl::Status WritePrediction(Connection& db, int64_t number, const PublishedPrediction& p,
                             const std::string& job_id) {
  json members = json::array();
  for (const Member& member : p.members) members.push_back(MemberJson(member));
  const std::string members_text = Dump(members), left_out = Dump(p.left_out),
                    quantile_scores = QuantileScoresText(p);
  Query q = db.Prepare(
      "INSERT OR REPLACE INTO predictions(number, path, sha256, bytes, rows, quality, oof_score, "
      "comparable, test_score, floor_score, at_ms, floor_weight, members_json, left_out_json, "
      "quantile_scores_json, job) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  Bind(q, PredictionColumns(p));
  q.Bind(members_text, left_out, quantile_scores, number);
  RETURN_IF_ERROR(Finish(q));
  // p.path is relative to the state folder; the table's paths are relative to the Job's folder.
  const std::string prefix = "jobs/" + job_id + "/";
  const std::string path =
      p.path.compare(0, prefix.size(), prefix) == 0 ? p.path.substr(prefix.size()) : p.path;
  return WriteArtifact(db, number, path, p.sha256, p.bytes, {}, {});
}

absl::Status WriteTable(Connection& db, int64_t number, const TableInfo& table) {
  Query q = db.Prepare(
      "INSERT OR REPLACE INTO datasets(table_path, content_sha256, train_rows, test_rows, "
      "features, classes, job) VALUES(?, ?, ?, ?, ?, ?, ?)");
  Bind(q, TableColumns(table));
  q.Bind(number);
  return Finish(q);
}

}  // namespace

absl::StatusOr<std::vector<Job>> ReadSelectedJobs(Connection& db, Query query, Detail detail,
                                                  std::vector<int64_t>* numbers) {
  std::vector<Job> jobs;
  while (query.Next()) {
    Job& job = jobs.emplace_back();
    int64_t number = 0;
    query.Read(number);
    ReadMore(query, FixedColumns(job));
    ReadMore(query, ChangingColumns(job));
    std::string warnings, after, trials, search, constraints;
    std::optional<int> prediction;
    query.ReadMore(job.spec_json, warnings, after, trials, search, constraints, prediction,
                   job.version);
    RETURN_IF_ERROR(UnpackSpec(job.spec_json));
    ReadMore(query, TableColumns(job.table));
    const auto parse = [](const std::string& text, const char* column, const auto& reader) {
      return text == "[]" || text == "{}" ? absl::OkStatus() : Parse(text, column, reader);
    };
    RETURN_IF_ERROR(parse(warnings, "jobs.warnings_json", [&](const json& j) {
      job.warnings = j.get<std::vector<std::string>>();
    }));
    RETURN_IF_ERROR(parse(after, "jobs.after_json",
                          [&](const json& j) { job.after = j.get<std::vector<std::string>>(); }));
    RETURN_IF_ERROR(parse(trials, "jobs.trials_json", [&](const json& j) {
      for (const json& trial : j) job.spec.trials.push_back(TrialFromJson(trial));
    }));
    RETURN_IF_ERROR(parse(search, "jobs.search_json",
                          [&](const json& j) { job.spec.search = SearchFromJson(j); }));
    RETURN_IF_ERROR(parse(constraints, "jobs.constraints_json",
                          [&](const json& j) { job.spec.constraints = ConstraintsFromJson(j); }));
    RETURN_IF_ERROR(ReadLabels(db, number, job));
    RETURN_IF_ERROR(ReadTasks(db, number, job));
    RETURN_IF_ERROR(ReadPlans(db, number, job));
    if (prediction) RETURN_IF_ERROR(ReadPrediction(db, number, *prediction, job));
    if (detail == Detail::kWhole) {
      RETURN_IF_ERROR(ReadDecisions(db, number, job));
      RETURN_IF_ERROR(ReadAttempts(db, number, job));
    }
    if (numbers) numbers->push_back(number);
  }
  RETURN_IF_ERROR(query.status());
  return jobs;
}

absl::Status InsertJob(Connection& db, const Job& job, int64_t* number) {
  const std::string warnings = ListText(job.warnings), trials = Dump(TrialsJson(job.spec.trials)),
                    search = SearchText(job.spec.search), after = ListText(job.after),
                    constraints = ConstraintsText(job.spec.constraints),
                    spec = PackSpec(job.spec_json);
  {
    Query q = db.Prepare(
        "INSERT INTO jobs(id, owner, request_id, name, spec_sha256, spec_text, "
        "accepted_at_ms, metric, higher_is_better, folds, epochs, patience, slots, device, batch, "
        "precision, checkpoint_every_ms, has_test, train_bytes, test_bytes, budget_ms, "
        "spec_deadline_ms, policy, share_plan, share_first_fold, share_reserve, share_stop, "
        "reserve_margin, reserve_least_ms, subsample, speed_key, cache_key, cache_read, from_job, "
        "seeds, models_from, asked_sha256, after_any_end, state, end_reason, "
        "end_message, started_at_ms, deadline_ms, finished_at_ms, finish_requested, "
        "cancel_requested, floor_model, floor_score, priority, publish_s, quota_reached, "
        "pinned, waited_ms, spec_json, warnings_json, after_json, trials_json, search_json, "
        "constraints_json, version) "
        "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
        "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
        "?, ?, ?)");
    Bind(q, FixedColumns(job));
    Bind(q, ChangingColumns(job));
    q.Bind(sqlite::Blob{spec}, warnings, after, trials, search, constraints, job.version);
    RETURN_IF_ERROR(Finish(q));
  }
  *number = db.last_insert_rowid();
  return InsertLabels(db, *number, job);
}

absl::Status WriteCheckpoint(Connection& db, int64_t number, const Checkpoint& checkpoint) {
  Query q = db.Prepare(
      "INSERT INTO checkpoints(attempt, step, fold, epoch, manifest, sha256, bytes, best_metric, "
      "at_ms, seed, trial, job) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
      "ON CONFLICT(job, attempt, step) DO NOTHING");
  Bind(q, CheckpointColumns(checkpoint));
  q.Bind(number);
  return Finish(q);
}

absl::Status UpdateJob(Connection& db, int64_t number, const Job* before, const Job& after) {
  static const TableInfo* const kNone = new TableInfo();
  if (TableColumns(after.table) != TableColumns(before ? before->table : *kNone)) {
    RETURN_IF_ERROR(WriteTable(db, number, after.table));
  }
  RETURN_IF_ERROR(WriteTasks(db, number, before, after));
  RETURN_IF_ERROR(WritePlans(db, number, before, after));
  RETURN_IF_ERROR(WriteDecisions(db, number, before, after));
  RETURN_IF_ERROR(WriteAttempts(db, number, before, after));
  if (after.prediction &&
      !SamePrediction(before ? before->prediction : std::nullopt, after.prediction)) {
    RETURN_IF_ERROR(WritePrediction(db, number, *after.prediction, after.id));
  }
  if (before && !SameSettings(before->spec.trials, after.spec.trials)) {
    RETURN_IF_ERROR(WriteTrials(db, number, after.spec.trials));
  }
  if (before && before->spec.labels != after.spec.labels) {
    RETURN_IF_ERROR(WriteLabels(db, number, after));
  }
  // A Job that was just inserted has all of this already, except its Prediction.
  if (before || after.prediction) return WriteState(db, number, after);
  return absl::OkStatus();
}

}  // namespace traind
