#include "server/search/search.h"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "common/job_rules/task_rules.h"
#include "common/search/range.h"
#include "server/search/settings.h"

namespace traind {
namespace {

constexpr int kMostRandom = 10;  // trials before those that others shape
constexpr int kMostDraws = 100;  // for settings that no trial has yet
constexpr int kMostByTpe = 20;   // of them, before it draws at random

bool IsTaken(const Spec& spec, const Settings& settings) {
  return std::any_of(spec.trials.begin(), spec.trials.end(), [&settings](const Trial& trial) {
    return trial.settings != nullptr && *trial.settings == settings;
  });
}

// Draws until the settings are new.
template <typename DrawSettings>
std::shared_ptr<const Settings> DrawUntaken(const Spec& spec, int trial,
                                            const DrawSettings& draw_settings) {
  for (int attempt = 0; attempt < kMostDraws; ++attempt) {
    Draw draw = DrawOf(spec.search.seed, trial, attempt);
    Settings settings = draw_settings(draw, attempt);
    if (!IsTaken(spec, settings)) return std::make_shared<const Settings>(std::move(settings));
  }
  return nullptr;
}

void DrawGrid(const Space& space, Spec& spec) {
  size_t next = 1;
  for (Settings& point : GridPoints(space, spec.search.seed, static_cast<int>(PointCount(space)))) {
    if (next == spec.trials.size()) return;
    if (IsTaken(spec, point)) continue;
    TakeSettings(std::make_shared<const Settings>(std::move(point)), spec.trials[next]);
    ++next;
  }
  spec.trials.resize(next);
}

void DrawRandomly(const Space& space, Spec& spec) {
  for (size_t t = 1; t < spec.trials.size(); ++t) {
    if (spec.trials[t].settings != nullptr) continue;
    auto settings = DrawUntaken(spec, static_cast<int>(t),
                                [&space](Draw& draw, int) { return DrawRandom(space, draw); });
    if (settings == nullptr) return spec.trials.resize(t);
    TakeSettings(std::move(settings), spec.trials[t]);
  }
}

// The mean over its folds of how much worse it is there than trial 0, so that trials with different
// folds compare; none: nothing tells yet.
std::optional<double> LossOf(const TrialView& trial, const TrialView& first, bool higher) {
  double sum = 0;
  int folds = 0;
  for (size_t k = 0; k < trial.folds.size(); ++k) {
    if (trial.folds[k].state == TrialFold::kFailed) return HUGE_VAL;
    if (trial.folds[k].state != TrialFold::kDone || first.folds[k].state != TrialFold::kDone) {
      continue;
    }
    const double worse = trial.folds[k].score - first.folds[k].score;
    sum += higher ? -worse : worse;
    ++folds;
  }
  if (folds == 0) return std::nullopt;
  return std::isfinite(sum) ? sum / folds : HUGE_VAL;
}

std::vector<Tried> TriedOf(const Spec& spec, const TrialsInput& shown) {
  std::vector<Tried> all;
  for (size_t t = 0; t < spec.trials.size() && t < shown.trials.size(); ++t) {
    if (spec.trials[t].settings == nullptr) continue;
    const std::optional<double> loss =
        LossOf(shown.trials[t], shown.trials[0], shown.higher_is_better);
    all.push_back({*spec.trials[t].settings, loss.value_or(0), !loss.has_value()});
  }
  return all;
}

}  // namespace

absl::Status DrawAtAcceptance(Spec& spec) {
  absl::StatusOr<Space> space = ParseSpace(spec.search.space);
  if (!space.ok()) return space.status();
  // Trial 0 may have a point of its own.
  const bool own = spec.trials[0].settings->size() < space->size();
  const double points = PointCount(*space) + (own ? 1 : 0);
  if (points < static_cast<double>(spec.trials.size())) {
    spec.trials.resize(static_cast<size_t>(points));
  }
  const std::string& method = spec.search.method;
  if (method == "grid") DrawGrid(*space, spec);
  if (method == "random" || method == "asha") DrawRandomly(*space, spec);
  return absl::OkStatus();
}

std::shared_ptr<const Settings> DrawNext(const Spec& spec, int trial, const TrialsInput& shown,
                                         int planned) {
  const absl::StatusOr<Space> space = ParseSpace(spec.search.space);
  if (!space.ok()) return nullptr;
  const std::vector<Tried> tried = TriedOf(spec, shown);
  const auto ended =
      std::count_if(tried.begin(), tried.end(), [](const Tried& one) { return !one.running; });
  const bool at_random = ended < std::clamp(planned / 2, 1, kMostRandom);
  return DrawUntaken(spec, trial, [&](Draw& draw, int attempt) {
    return at_random || attempt >= kMostByTpe ? DrawRandom(*space, draw)
                                              : DrawByTpe(*space, tried, draw);
  });
}

std::vector<Tried> TriedBy(const Job& job) {
  TrialsInput shown;
  shown.higher_is_better = job.spec.higher_is_better;
  shown.trials.resize(job.spec.trials.size());
  for (TrialView& trial : shown.trials) trial.folds.resize(static_cast<size_t>(job.spec.folds));
  for (const Task& task : job.tasks) {
    if (task.kind != TaskKind::kTrain || !task.member || !task.score) continue;
    if (!IsTerminal(task.state)) continue;
    shown.trials[static_cast<size_t>(task.trial)].folds[static_cast<size_t>(task.fold)] = {
        TrialFold::kDone, *task.score};
  }
  return TriedOf(job.spec, shown);
}

void TakeSettings(std::shared_ptr<const Settings> settings, Trial& trial) {
  for (const auto& [path, value] : *settings) {
    int number = 0;
    if (!absl::SimpleAtoi(value, &number)) continue;
    const bool rounds =
        absl::EndsWith(path, ".num_iterations") || absl::EndsWith(path, ".num_boost_round");
    const bool patient_rounds = absl::EndsWith(path, ".early_stopping_round") ||
                                absl::EndsWith(path, ".early_stopping_rounds");
    if (path == "train.epochs") trial.epochs = number;
    if (path == "train.patience") trial.patience = number;
    if (rounds) trial.epochs = static_cast<int>(EpochsOfRounds(number));
    if (patient_rounds) {
      trial.patience = number == 0 ? 0 : static_cast<int>(EpochsOfRounds(number));
    }
  }
  trial.settings = std::move(settings);
}

absl::Status NoProposals(const std::string& job) {
  return absl::FailedPreconditionError(
      absl::StrCat("job ", job, " takes no proposals: its spec has no search.method: ask"));
}

bool HasRungs(const Search& search) {
  return search.method == "asha" || search.method == "auto" || AsksClients(search);
}

}  // namespace traind
