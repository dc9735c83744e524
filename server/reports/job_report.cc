#include "server/reports/job_report.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/string_view.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "server/reports/loss_curve.h"

namespace traind {
namespace {

// Whether the rule takes something away.
bool Cuts(DecisionRule rule) {
  return rule == DecisionRule::kB2 || rule == DecisionRule::kB3 || rule == DecisionRule::kB4 ||
         rule == DecisionRule::kB5 || rule == DecisionRule::kQuota;
}

void AddTimes(const Job& job, absl::Time now, JobReport& report) {
  double folds_s = 0, inference_s = 0;
  for (const Attempt& attempt : job.attempts) {
    const double s = absl::ToDoubleSeconds(std::min(now, attempt.ended_at) - attempt.started_at);
    if (attempt.kind == TaskKind::kPrepare) {
      report.prepare_s += s;
    } else {
      (UsesModels(attempt.kind) ? inference_s : folds_s) += s;
      report.device_s += s * SlotCount(attempt);
    }
  }
  double folds_predict_s = 0;
  for (const Task& task : job.tasks) {
    report.probe_s += task.spent.probe_s;
    report.validate_s += task.spent.validate_s;
    folds_predict_s += task.spent.predict_s;
  }
  report.train_s = std::max(0.0, folds_s - report.probe_s - report.validate_s - folds_predict_s);
  report.predict_s = folds_predict_s + inference_s + job.publish_s;
  const absl::Time begun = std::min({job.started_at, job.finished_at, now});
  report.queue_s = std::max(0.0, absl::ToDoubleSeconds(begun - ClockStart(job)));
}

void AddResources(const Job& job, JobReport& report) {
  double epochs = 0, device_s = 0, used_s = 0, known_s = 0, joules = 0, joules_epochs = 0;
  bool energy_known = false;
  for (const Attempt& attempt : job.attempts) {
    const facts::Resources& r = attempt.resources;
    report.peak_memory_bytes = std::max(report.peak_memory_bytes, r.peak_memory_bytes);
    report.peak_device_bytes = std::max(report.peak_device_bytes, r.peak_device_bytes);
    epochs += r.epochs;
    device_s += r.seconds * SlotCount(attempt);
    if (r.utilisation >= 0) {
      used_s += r.utilisation * r.seconds;
      known_s += r.seconds;
    }
    if (r.energy_joules >= 0) {
      energy_known = true;
      joules += r.energy_joules;
      joules_epochs += r.epochs;
    }
  }
  if (known_s > 0) report.utilisation = used_s / known_s;
  if (energy_known) report.energy_joules = joules;
  if (epochs > 0 && device_s > 0) report.epoch_device_s = device_s / epochs;
  if (joules_epochs > 0) report.epoch_joules = joules / joules_epochs;
}

// A PREPARE counts as all slots, because no fold can run beside it before the table is there.
std::optional<double> UsedShare(const Job& job) {
  if (!IsTerminal(job.state) || job.deadline == absl::InfiniteFuture()) return std::nullopt;
  const absl::Duration reserve =
      job.plans.empty() ? absl::ZeroDuration() : job.plans.back().reserve;
  const absl::Time end = job.deadline - reserve;
  const absl::Time start = ClockStart(job);
  if (end <= start) return std::nullopt;
  const double slots =
      job.plans.empty() ? 1 : std::max(1, job.plans.back().parallel_folds * job.plans.back().ranks);
  std::map<absl::Time, double> changes;  // of the slots at work
  for (const Attempt& attempt : job.attempts) {
    const double held = attempt.kind == TaskKind::kTrain ? SlotCount(attempt) : slots;
    changes[std::clamp(attempt.started_at, start, end)] += held;
    changes[std::clamp(attempt.ended_at, start, end)] -= held;
  }
  double used_s = 0, at_work = 0;
  absl::Time last = start;
  for (const auto& [at, change] : changes) {
    used_s += std::min(at_work, slots) * absl::ToDoubleSeconds(at - last);
    at_work += change;
    last = at;
  }
  return used_s / (slots * absl::ToDoubleSeconds(end - start));
}

std::string Count(int n, const char* noun) {
  return absl::StrCat(n, " more ", noun, n == 1 ? "" : "s");
}

using Curve = std::vector<std::pair<double, double>>;

// Returns the curves of the folds' first models, by fold; if an epoch was trained twice, the later
// value counts.
std::map<int, Curve> CurvesOf(const Job& job, const std::vector<MetricPoint>& metrics) {
  std::set<int64_t> others;  // Attempts of extra models
  for (const Attempt& attempt : job.attempts) {
    if (IsExtra(attempt)) others.insert(attempt.id);
  }
  std::map<int, std::map<double, double>> by_epoch;
  for (const MetricPoint& point : metrics) {
    if (point.name == "val_metric" && others.count(point.attempt) == 0)
      by_epoch[point.fold][point.epoch] = point.value;
  }
  std::map<int, Curve> curves;
  for (const auto& [fold, values] : by_epoch) curves[fold].assign(values.begin(), values.end());
  return curves;
}

// Returns whether a Job with further trials ended because its time was over, not because nothing
// more was expected to gain.
bool TimeEndedTrials(const Job& job) {
  if (job.spec.trials.size() < 2 || job.deadline == absl::InfiniteFuture() ||
      job.finish_requested) {
    return false;
  }
  return std::none_of(job.decisions.begin(), job.decisions.end(), [](const Decision& decision) {
    return decision.trial_note.kind == TrialNote::kNoGain;
  });
}

// Estimates what as much time again buys where further trials would go on, from the scores of the
// answers so far over the time.
std::optional<MoreTime> EstimateMoreTrials(const Job& job, const std::vector<AnswerAt>& answers) {
  if (!TimeEndedTrials(job)) return std::nullopt;
  Curve curve;
  for (const AnswerAt& at : answers) {
    if (at.answer.comparable && at.answer.oof_score)
      curve.emplace_back(at.at_s, *at.answer.oof_score);
  }
  MoreTime more;
  more.time = job.deadline - ClockStart(job);
  more.buys = "models of further trials";
  const double until = 2 * absl::ToDoubleSeconds(more.time);
  if (const auto ahead = Extrapolate(curve, until, job.spec.higher_is_better)) {
    more.now = ahead->now;
    more.low = ahead->low;
    more.expected = ahead->expected;
    more.high = ahead->high;
  }
  return more;
}

// Estimates the value of more time for folds that would continue, or begin.
std::optional<MoreTime> EstimateMoreTime(const Job& job, const std::vector<MetricPoint>& metrics) {
  const std::map<int, Curve> curves = CurvesOf(job, metrics);
  double seconds = 0, most_epochs = 0, epoch_s = 0;
  int folds = 0, measured = 0, longer = 0, shown = 0;
  Extrapolation sum;
  for (const Task& task : job.tasks) {
    if (task.measured.epoch_s <= 0) continue;
    epoch_s += task.measured.epoch_s + task.measured.evaluate_s;
    ++measured;
  }
  if (measured == 0) return std::nullopt;
  epoch_s /= measured;
  for (const Task& task : job.tasks) {
    if (task.kind != TaskKind::kTrain || IsExtra(task) || !IsTerminal(task.state) ||
        RanOutOfPatience(task)) {
      continue;
    }
    const bool trained = task.member.has_value();
    const double left = job.spec.epochs - (trained ? task.epochs_done : 0);
    if (left < 1) continue;
    seconds += left * epoch_s;
    (trained ? longer : folds) += 1;
    if (!trained) continue;
    most_epochs = std::max(most_epochs, left);
    const auto curve = curves.find(task.fold);
    if (curve == curves.end()) continue;
    const auto ahead = Extrapolate(curve->second, job.spec.epochs, job.spec.higher_is_better);
    if (!ahead) continue;
    ++shown;
    sum.now += ahead->now;
    sum.low += ahead->low;
    sum.expected += ahead->expected;
    sum.high += ahead->high;
  }
  if (folds + longer == 0) return std::nullopt;
  MoreTime more;
  const int parallel = job.plans.empty() ? 1 : std::max(1, job.plans.back().parallel_folds);
  more.time = absl::Seconds(seconds / std::min(parallel, folds + longer));
  std::vector<std::string> buys;
  if (folds > 0) buys.push_back(Count(folds, "fold"));
  if (longer > 0) {
    buys.push_back(absl::StrCat("up to ", Count(static_cast<int>(std::ceil(most_epochs)), "epoch"),
                                " for ", longer, longer == 1 ? " fold" : " folds"));
  }
  more.buys = absl::StrJoin(buys, ", ");
  if (shown > 0) {
    more.now = sum.now / shown;
    more.low = sum.low / shown;
    more.expected = sum.expected / shown;
    more.high = sum.high / shown;
  }
  return more;
}

// How much worse the models of a fold get without a column: a mean by their weights.
struct Drop {
  double sum = 0, weight = 0;
  double mean() const { return sum / weight; }
};
using Drops = std::map<std::string, std::map<int, Drop>>;  // by column and fold

// Of the models that answer, by their weights. Empty: none of them has told.
Drops DropsOfAnswer(const Job& job, const std::vector<MetricPoint>& metrics) {
  std::map<int64_t, double> weights;  // by Attempt
  if (job.prediction) {
    for (const Member& member : job.prediction->members) {
      weights[member.attempt] = member.weight > 0 ? member.weight : 1;  // 0: not recorded
    }
  }
  Drops drops;
  for (const MetricPoint& point : metrics) {
    const auto weight = weights.find(point.attempt);
    absl::string_view column = point.name;
    if (weight == weights.end() || !absl::ConsumePrefix(&column, kImportanceMetric)) continue;
    if (!std::isfinite(point.value)) continue;
    Drop& drop = drops[std::string(column)][point.fold];
    drop.sum += weight->second * point.value;
    drop.weight += weight->second;
  }
  return drops;
}

// Of the last Attempt of each fold that has told.
Drops DropsOfLast(const std::vector<MetricPoint>& metrics) {
  Drops drops;
  for (const MetricPoint& point : metrics) {
    absl::string_view column = point.name;
    if (!absl::ConsumePrefix(&column, kImportanceMetric) || !std::isfinite(point.value)) continue;
    drops[std::string(column)][point.fold] = {point.value, 1};
  }
  return drops;
}

std::vector<ColumnImportance> ImportanceOf(const Job& job,
                                           const std::vector<MetricPoint>& metrics) {
  Drops drops = DropsOfAnswer(job, metrics);
  if (drops.empty()) drops = DropsOfLast(metrics);
  std::vector<ColumnImportance> importance;
  for (const auto& [column, by_fold] : drops) {
    ColumnImportance& of = importance.emplace_back();
    of.column = column;
    of.folds = static_cast<int>(by_fold.size());
    for (const auto& [fold, drop] : by_fold) of.drop += drop.mean() / of.folds;
    if (of.folds < 2) continue;
    double squares = 0;
    for (const auto& [fold, drop] : by_fold) {
      squares += (drop.mean() - of.drop) * (drop.mean() - of.drop);
    }
    of.error = std::sqrt(squares / (of.folds - 1) / of.folds);
  }
  std::stable_sort(
      importance.begin(), importance.end(),
      [](const ColumnImportance& a, const ColumnImportance& b) { return a.drop > b.drop; });
  return importance;
}

}  // namespace

JobReport ReportOf(const Job& job, const JobHistory& history, absl::Time now) {
  JobReport report;
  report.folds_asked = job.spec.folds;
  report.models_asked = job.spec.folds * job.spec.seeds;
  report.epochs_asked = job.spec.epochs;
  report.folds_planned = job.plans.empty() ? job.spec.folds : job.plans.back().folds;
  report.epochs_planned = job.plans.empty() ? job.spec.epochs : job.plans.back().epochs;
  double epochs = 0;
  int trained = 0;
  for (const Task& task : job.tasks) {
    if (task.kind != TaskKind::kTrain) continue;
    report.models_trained += task.member.has_value();
    if (IsExtra(task)) continue;
    report.folds_done += task.state == TaskState::kDone;
    report.folds_partial += task.state == TaskState::kPartial;
    report.folds_reused += task.reused;
    if (task.epochs_done <= 0) continue;
    epochs += task.epochs_done;
    ++trained;
  }
  if (trained > 0) report.epochs_done = epochs / trained;
  AddTimes(job, now, report);
  report.used_share = UsedShare(job);
  AddResources(job, report);
  report.revisions = std::max(0, static_cast<int>(job.plans.size()) - 1);
  for (const Decision& d : job.decisions) {
    if (!Cuts(d.rule)) continue;
    report.cuts.push_back(
        absl::StrCat(d.from, " -> ", d.to, " (", Name(d.rule), ": ", d.cause, ")"));
  }
  for (const Answer& answer : history.answers) {
    const double at_s = std::max(0.0, absl::ToDoubleSeconds(answer.at - ClockStart(job)));
    report.answers.push_back({at_s, answer});
  }
  report.importance = ImportanceOf(job, history.metrics);
  if (!IsTerminal(job.state)) return report;
  report.more = EstimateMoreTime(job, history.metrics);
  if (!report.more) report.more = EstimateMoreTrials(job, report.answers);
  return report;
}

}  // namespace traind
