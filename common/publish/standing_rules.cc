#include "common/publish/standing_rules.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace traind {
namespace {

bool SameFiles(const Member& a, const Member& b) {
  return a.fold == b.fold && a.trial == b.trial && a.seed == b.seed &&
         a.oof_sha256 == b.oof_sha256 && a.test_sha256 == b.test_sha256;
}

// Whether both answer with the same models, of several trials also with the same weights.
bool SameModels(const PublishedPrediction& a, const PublishedPrediction& b, bool trials) {
  constexpr double kRounding = 1e-9;
  return std::equal(a.members.begin(), a.members.end(), b.members.begin(), b.members.end(),
                    [trials](const Member& x, const Member& y) {
                      return SameFiles(x, y) && x.complete == y.complete &&
                             (!trials || std::abs(x.weight - y.weight) < kRounding);
                    });
}

// Whether every fold of the standing Prediction was considered for the next one, too.
bool AllConsidered(const PublishedPrediction& standing, const NextStanding& next) {
  const std::vector<int>& left_out = next.prediction->left_out;
  return std::all_of(standing.members.begin(), standing.members.end(), [&](const Member& member) {
    return next.folds.count(member.fold) > 0 ||
           std::count(left_out.begin(), left_out.end(), member.fold) > 0;
  });
}

}  // namespace

bool TakenBefore(const Member& a, const Member& b) {
  return std::make_tuple(a.complete, a.attempt, a.epochs_done) >
         std::make_tuple(b.complete, b.attempt, b.epochs_done);
}

Quality QualityOf(const PublishRequest& request, size_t members, int complete) {
  if (members == 0) return Quality::kFloor;
  return complete == request.spec_folds && !request.plan_cut ? Quality::kFull : Quality::kDegraded;
}

int CompleteFolds(const std::vector<Member>& answering, const std::vector<Member>& idle) {
  std::set<int> folds, complete;
  const auto add = [&complete](const Member& member) {
    if (!IsExtra(member) && member.complete) complete.insert(member.fold);
  };
  for (const Member& member : answering) {
    folds.insert(member.fold);
    add(member);
  }
  for (const Member& member : idle) add(member);
  return static_cast<int>(std::count_if(folds.begin(), folds.end(),
                                        [&](int fold) { return complete.count(fold) > 0; }));
}

bool Replaces(const NextStanding& next, const PublishedPrediction& standing,
              const std::vector<Member>& idle, const std::function<bool()>& better_floor,
              const std::function<bool()>& not_worse) {
  const PublishedPrediction& answer = *next.prediction;
  if (answer.members.empty() && standing.members.empty()) return better_floor();
  if (SameModels(answer, standing, next.trials) && answer.tuned == standing.tuned) {
    return answer.quality > standing.quality;
  }
  if (next.complete > CompleteFolds(standing.members, idle)) return true;
  // No fold is in both. `next` was chosen on the rows of all folds, including the standing ones, so
  // that choice knows more than a comparison on the standing ones' rows alone.
  const bool disjoint =
      std::none_of(standing.members.begin(), standing.members.end(),
                   [&next](const Member& member) { return next.folds.count(member.fold) > 0; });
  if (!standing.members.empty() && disjoint && AllConsidered(standing, next)) return true;
  return not_worse();
}

}  // namespace traind
