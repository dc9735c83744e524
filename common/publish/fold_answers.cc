#include "common/publish/fold_answers.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "common/publish/ensemble.h"

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

absl::StatusOr<LoadedMember> Load(const PublishRequest& request, const ScoringData& scoring,
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
  if (scoring.test_rows() > 0) {
    ASSIGN_OR_RETURN(loaded.test,
                     LoadArray(request, member.test, member.test_sha256, scoring.test_values()));
  }
  return loaded;
}

// Returns the mean of the models' out-of-fold values and, if given, of one more model's.
std::vector<float> MeanOof(const std::vector<LoadedMember>& models, const LoadedMember* more) {
  std::vector<absl::Span<const float>> parts;
  for (const LoadedMember& model : models) parts.push_back(model.oof);
  if (more != nullptr) parts.push_back(more->oof);
  const std::vector<double> weights(parts.size(), 1.0 / static_cast<double>(parts.size()));
  std::vector<float> mean(parts[0].size());
  Blend(parts, weights, absl::MakeSpan(mean));
  return mean;
}

FoldAnswer AnswerBy(LoadedMember first) {
  FoldAnswer answer;
  answer.complete = !IsExtra(first.member) && first.member.complete;
  answer.score = first.member.score;
  answer.oof = first.oof;
  answer.models.push_back(std::move(first));
  return answer;
}

void AddUnlessWorse(const ScoringData& scoring, LoadedMember model, FoldAnswer& answer) {
  const int fold = model.member.fold;
  std::vector<float> mean = MeanOof(answer.models, &model);
  const double score = scoring.OnFold(mean, fold);
  if (Better(scoring.metric, scoring.OnFold(answer.oof, fold), score)) return;
  answer.oof = std::move(mean);
  answer.score = score;
  answer.models.push_back(std::move(model));
}

}  // namespace

AnswersByFold ChooseAnswers(const PublishRequest& request, const ScoringData& scoring,
                            const std::vector<Member>& standing) {
  std::vector<Member> candidates = request.members;
  candidates.insert(candidates.end(), standing.begin(), standing.end());
  std::stable_sort(candidates.begin(), candidates.end(), [](const Member& a, const Member& b) {
    return std::make_tuple(a.complete, a.attempt, a.epochs_done) >
           std::make_tuple(b.complete, b.attempt, b.epochs_done);
  });
  std::map<std::tuple<int, int, int>, LoadedMember> chosen;  // keyed by fold, trial and seed
  for (const Member& candidate : candidates) {
    const auto key = std::make_tuple(candidate.fold, candidate.trial, candidate.seed);
    if (chosen.count(key) > 0) continue;
    absl::StatusOr<LoadedMember> loaded = Load(request, scoring, candidate);
    if (loaded.ok()) chosen.emplace(key, *std::move(loaded));
  }
  AnswersByFold answers;
  for (auto& [key, loaded] : chosen) {
    const auto answer = answers.find(loaded.member.fold);
    if (answer == answers.end()) {
      answers.emplace(loaded.member.fold, AnswerBy(std::move(loaded)));
    } else {
      AddUnlessWorse(scoring, std::move(loaded), answer->second);
    }
  }
  return answers;
}

std::optional<FoldAnswer> AnswerOf(const PublishRequest& request, const ScoringData& scoring,
                                   const std::vector<Member>& members) {
  std::optional<FoldAnswer> answer;
  for (const Member& member : members) {
    absl::StatusOr<LoadedMember> loaded = Load(request, scoring, member);
    if (!loaded.ok()) return std::nullopt;
    if (answer) {
      answer->models.push_back(*std::move(loaded));
    } else {
      answer = AnswerBy(*std::move(loaded));
    }
  }
  if (answer && answer->models.size() > 1) answer->oof = MeanOof(answer->models, nullptr);
  return answer;
}

}  // namespace traind
