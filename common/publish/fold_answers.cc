#include "common/publish/fold_answers.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <list>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "common/publish/standing_rules.h"
#include "common/publish/trial_selection.h"

namespace traind {
namespace {

bool LeavesFolder(const std::string& path) {
  if (path.empty() || path[0] == '/') return true;
  const std::vector<absl::string_view> parts = absl::StrSplit(path, '/');
  return std::find(parts.begin(), parts.end(), "..") != parts.end();
}

absl::StatusOr<std::shared_ptr<const TestValues>> LoadArray(const PublishRequest& request,
                                                            const std::string& path,
                                                            const std::string& sha256,
                                                            size_t values) {
  if (LeavesFolder(path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' is not a path in the job's folder"));
  }
  const std::string full = absl::StrCat(request.state_dir, "/", JobDir(request.job), "/", path);
  ASSIGN_OR_RETURN(std::shared_ptr<const TestValues> array, TestValues::Open(full, sha256));
  if (array->values().size() != values) {
    return absl::DataLossError(absl::StrCat(full, " has another shape"));
  }
  return array;
}

absl::StatusOr<LoadedMember> LoadOof(const PublishRequest& request, const ScoringData& scoring,
                                     const Member& member) {
  if (member.fold < 0 || member.fold >= request.spec_folds) {
    return absl::InvalidArgumentError(absl::StrCat("there is no fold ", member.fold));
  }
  LoadedMember loaded;
  loaded.member = member;
  const size_t rows = scoring.fold_rows[static_cast<size_t>(member.fold)].size();
  ASSIGN_OR_RETURN(const std::shared_ptr<const TestValues> oof,
                   LoadArray(request, member.oof, member.oof_sha256, rows * scoring.columns));
  loaded.oof.assign(oof->values().begin(), oof->values().end());
  return loaded;
}

absl::Status LoadTest(const PublishRequest& request, const ScoringData& scoring,
                      LoadedMember& loaded) {
  if (scoring.test_rows() == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(loaded.test, LoadArray(request, loaded.member.test, loaded.member.test_sha256,
                                          scoring.test_values()));
  return absl::OkStatus();
}

// Returns the mean of the parts; no weights: all are equal.
std::vector<float> MeanOf(const std::vector<absl::Span<const float>>& parts,
                          std::vector<double> weights = {}) {
  if (weights.empty()) weights.assign(parts.size(), 1.0 / static_cast<double>(parts.size()));
  std::vector<float> mean(parts[0].size());
  Blend(parts, weights, absl::MakeSpan(mean));
  return mean;
}

// Returns the mean of the models' out-of-fold values and, if given, of one more model's.
std::vector<float> MeanOof(const std::vector<LoadedMember>& models, const LoadedMember* more) {
  std::vector<absl::Span<const float>> parts;
  for (const LoadedMember& model : models) parts.push_back(model.oof);
  if (more != nullptr) parts.push_back(more->oof);
  return MeanOf(parts);
}

FoldAnswer AnswerBy(LoadedMember first) {
  FoldAnswer answer;
  answer.complete = first.member.seed == 0 && first.member.complete;
  answer.score = first.member.score;
  answer.oof = first.oof;
  answer.models.push_back(std::move(first));
  return answer;
}

void AddUnlessWorse(const ScoringData& scoring, LoadedMember model, FoldAnswer& answer,
                    Answers& answers) {
  const int fold = model.member.fold;
  std::vector<float> mean = MeanOof(answer.models, &model);
  const double score = scoring.OnFold(mean, fold);
  const double before = scoring.OnFold(answer.oof, fold);
  if (Better(scoring.metric, before, score)) {
    answers.worse.push_back({fold, model.member.trial, model.member.seed, score, before});
    answers.idle.push_back(std::move(model.member));
    return;
  }
  answer.oof = std::move(mean);
  answer.score = score;
  answer.models.push_back(std::move(model));
}

using AnswersByTrial = std::map<int, AnswersByFold>;

// The trials as SelectTrials wants them, with the arrays that it needs.
class TrialsToSelect {
 public:
  TrialsToSelect(const ScoringData& scoring, const AnswersByTrial& trials,
                 const std::optional<StandingFloor>& floor) {
    std::set<int> covered;
    for (const auto& [trial, answers] : trials) {
      for (const auto& [fold, answer] : answers) covered.insert(fold);
    }
    for (const int fold : covered) AddFold(scoring, trials, floor, fold);
  }

  TrialWeights Select(const ScoringData& scoring) const {
    return SelectTrials(scoring.metric, scoring.columns, folds_, /*plain=*/0);
  }

 private:
  void AddFold(const ScoringData& scoring, const AnswersByTrial& trials,
               const std::optional<StandingFloor>& floor, int fold) {
    const std::vector<size_t>& rows = scoring.fold_rows[static_cast<size_t>(fold)];
    if (rows.empty()) return;
    FoldOfTrials& to = folds_.emplace_back();
    if (scoring.classes()) {
      to.labels = scoring.LabelsOf(rows);
    } else {
      to.targets = scoring.TargetsOf(rows);
    }
    double best = 0;
    bool any = false;
    for (const auto& [trial, answers] : trials) {
      const auto answer = answers.find(fold);
      to.trials.emplace_back();
      if (answer == answers.end()) continue;
      to.trials.back() = answer->second.oof;
      if (any && !Better(scoring.metric, answer->second.score, best)) continue;
      to.fallback = to.trials.size() - 1;
      best = answer->second.score;
      any = true;
    }
    if (!floor) return;
    std::vector<float>& values = floor_.emplace_back();
    for (const size_t row : rows) {
      const auto begin = floor->oof.begin() + static_cast<ptrdiff_t>(row * scoring.columns);
      values.insert(values.end(), begin, begin + static_cast<ptrdiff_t>(scoring.columns));
    }
    to.floor = values;
  }

  std::vector<FoldOfTrials> folds_;
  std::list<std::vector<float>> floor_;  // [rows, C] of each fold
};

TrialWeights WeighTrials(const ScoringData& scoring, EnsembleKind kind,
                         const AnswersByTrial& trials, const std::optional<StandingFloor>& floor) {
  if (kind == EnsembleKind::kGreedy) return TrialsToSelect(scoring, trials, floor).Select(scoring);
  TrialWeights weights;
  weights.trials.assign(trials.size(), 1.0 / static_cast<double>(trials.size()));
  if (kind == EnsembleKind::kMean) return weights;
  std::vector<double> scores;
  for (const auto& [trial, answers] : trials) {
    double sum = 0;
    for (const auto& [fold, answer] : answers) sum += answer.score;
    scores.push_back(sum / static_cast<double>(answers.size()));
  }
  weights.trials = WeightsByScore(scoring.metric, scores);
  return weights;
}

// The answers of one fold by the trials that have it.
struct TrialsOfFold {
  std::vector<FoldAnswer*> answers;
  std::vector<double> weights;
};

// Keeps those with a weight, scaled to sum to 1; where there is none, the best one alone.
void KeepWeighted(const ScoringData& scoring, TrialsOfFold& of_fold, std::vector<Member>& idle) {
  const std::vector<double>& weights = of_fold.weights;
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  size_t best = 0;
  for (size_t k = 1; k < weights.size(); ++k) {
    if (Better(scoring.metric, of_fold.answers[k]->score, of_fold.answers[best]->score)) best = k;
  }
  TrialsOfFold kept;
  for (size_t k = 0; k < weights.size(); ++k) {
    if (sum > 0 ? weights[k] > 0 : k == best) {
      kept.answers.push_back(of_fold.answers[k]);
      kept.weights.push_back(sum > 0 ? weights[k] / sum : 1);
      continue;
    }
    for (const LoadedMember& model : of_fold.answers[k]->models) idle.push_back(model.member);
  }
  of_fold = std::move(kept);
}

FoldAnswer JoinTrials(const ScoringData& scoring, int fold, TrialsOfFold of_fold) {
  FoldAnswer joined;
  std::vector<absl::Span<const float>> parts;
  for (const FoldAnswer* answer : of_fold.answers) parts.push_back(answer->oof);
  joined.oof = MeanOf(parts, of_fold.weights);
  for (size_t k = 0; k < of_fold.answers.size(); ++k) {
    FoldAnswer& answer = *of_fold.answers[k];
    joined.complete |= answer.complete;
    const auto models = static_cast<double>(answer.models.size());
    joined.shares.insert(joined.shares.end(), answer.models.size(), of_fold.weights[k] / models);
    for (LoadedMember& model : answer.models) joined.models.push_back(std::move(model));
  }
  joined.score = scoring.OnFold(joined.oof, fold);
  return joined;
}

// Weighs the trials, and joins their answers fold by fold.
void Weigh(const ScoringData& scoring, EnsembleKind kind, const std::optional<StandingFloor>& floor,
           AnswersByTrial& trials, Answers& answers) {
  answers.trials = true;
  const TrialWeights weights = WeighTrials(scoring, kind, trials, floor);
  answers.floor = weights.floor;
  std::map<int, TrialsOfFold> by_fold;
  size_t k = 0;
  for (auto& [trial, of_trial] : trials) {
    for (auto& [fold, answer] : of_trial) {
      by_fold[fold].answers.push_back(&answer);
      by_fold[fold].weights.push_back(weights.trials[k]);
    }
    ++k;
  }
  for (auto& [fold, of_fold] : by_fold) {
    KeepWeighted(scoring, of_fold, answers.idle);
    answers.folds.emplace(fold, JoinTrials(scoring, fold, std::move(of_fold)));
  }
}

// The models that an answer can be made of.
class Chooser {
 public:
  Chooser(const PublishRequest& request, const ScoringData& scoring,
          const std::vector<Member>& standing)
      : request_(request), scoring_(scoring), candidates_(request.members) {
    candidates_.insert(candidates_.end(), standing.begin(), standing.end());
    std::stable_sort(candidates_.begin(), candidates_.end(), TakenBefore);
  }

  // Only the files of models that answer are read as a whole. Where one is damaged, the choice is
  // made again without that model.
  Answers Choose(EnsembleKind kind, const std::optional<StandingFloor>& floor) {
    for (;;) {
      Answers answers = ChooseByOof(kind, floor);
      if (LoadTests(answers)) return answers;
    }
  }

 private:
  Answers ChooseByOof(EnsembleKind kind, const std::optional<StandingFloor>& floor) {
    std::map<std::tuple<int, int, int>, LoadedMember> chosen;  // keyed by trial, fold and seed
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const Member& candidate = candidates_[i];
      const std::tuple<int, int, int> key(candidate.trial, candidate.fold, candidate.seed);
      if (unusable_.count(i) > 0 || chosen.count(key) > 0) continue;
      absl::StatusOr<LoadedMember> loaded = LoadOof(request_, scoring_, candidate);
      if (!loaded.ok()) continue;
      loaded->candidate = i;
      chosen.emplace(key, *std::move(loaded));
    }
    Answers answers;
    AnswersByTrial trials;
    for (auto& [key, loaded] : chosen) {
      const Member& member = loaded.member;
      if (!IsExtra(member) && member.complete) answers.complete.insert(member.fold);
      AnswersByFold& of_trial = trials[member.trial];
      const auto answer = of_trial.find(member.fold);
      if (answer == of_trial.end()) {
        of_trial.emplace(member.fold, AnswerBy(std::move(loaded)));
      } else {
        AddUnlessWorse(scoring_, std::move(loaded), answer->second, answers);
      }
    }
    if (trials.size() == 1) {
      answers.folds = std::move(trials.begin()->second);
    } else if (!trials.empty()) {
      Weigh(scoring_, kind, floor, trials, answers);
    }
    return answers;
  }

  bool LoadTests(Answers& answers) {
    bool whole = true;
    for (auto& [fold, answer] : answers.folds) {
      for (LoadedMember& model : answer.models) {
        if (LoadTest(request_, scoring_, model).ok()) continue;
        unusable_.insert(model.candidate);
        whole = false;
      }
    }
    return whole;
  }

  const PublishRequest& request_;
  const ScoringData& scoring_;
  std::vector<Member> candidates_;  // the best of each model first
  std::set<size_t> unusable_;       // of candidates_
};

}  // namespace

Answers ChooseAnswers(const PublishRequest& request, const ScoringData& scoring, EnsembleKind kind,
                      const std::optional<StandingFloor>& floor,
                      const std::vector<Member>& standing) {
  return Chooser(request, scoring, standing).Choose(kind, floor);
}

std::optional<FoldAnswer> AnswerOf(const PublishRequest& request, const ScoringData& scoring,
                                   const std::vector<Member>& members) {
  FoldAnswer answer;
  double sum = 0;
  for (const Member& member : members) {
    absl::StatusOr<LoadedMember> loaded = LoadOof(request, scoring, member);
    if (!loaded.ok() || !LoadTest(request, scoring, *loaded).ok()) return std::nullopt;
    answer.complete |= member.seed == 0 && member.complete;
    answer.models.push_back(*std::move(loaded));
    sum += member.weight;
  }
  if (answer.models.empty()) return std::nullopt;
  std::vector<absl::Span<const float>> parts;
  for (const LoadedMember& model : answer.models) {
    parts.push_back(model.oof);
    if (sum > 0) answer.shares.push_back(model.member.weight / sum);
  }
  answer.oof = MeanOf(parts, answer.shares);
  answer.score = scoring.OnFold(answer.oof, members[0].fold);
  return answer;
}

}  // namespace traind
