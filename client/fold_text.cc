#include "client/fold_text.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

namespace traind {
namespace {

template <typename Condition>
int Count(const v1::Job& job, Condition condition) {
  return static_cast<int>(std::count_if(job.folds().begin(), job.folds().end(), condition));
}

}  // namespace

std::string FoldName(const v1::Fold& fold) {
  return absl::StrCat(fold.index(), fold.trial() > 0 ? absl::StrCat(" trial ", fold.trial()) : "",
                      fold.seed() > 0 ? absl::StrCat("/", fold.seed()) : "");
}

std::string TaskOfFold(const v1::Fold& fold) {
  return absl::StrCat("fold-", fold.index(),
                      fold.trial() > 0 ? absl::StrCat("-trial-", fold.trial()) : "",
                      fold.seed() > 0 ? absl::StrCat("-seed-", fold.seed()) : "");
}

bool IsExtra(const v1::Fold& fold) { return fold.trial() > 0 || fold.seed() > 0; }

bool IsTrained(const v1::Fold& fold) {
  return fold.state() == v1::TASK_STATE_DONE || fold.state() == v1::TASK_STATE_PARTIAL;
}

int CountFolds(const v1::Job& job) {
  return Count(job, [](const v1::Fold& fold) { return !IsExtra(fold); });
}

int TrainedFolds(const v1::Job& job) {
  return Count(job, [](const v1::Fold& fold) { return !IsExtra(fold) && IsTrained(fold); });
}

int ExtraModels(const v1::Job& job) {
  return Count(job, [](const v1::Fold& fold) { return IsExtra(fold) && IsTrained(fold); });
}

}  // namespace traind
