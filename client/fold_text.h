// Counts and names folds and their models.
// Threads: safe, pure.
#pragma once

#include <string>

#include "proto/job.pb.h"

namespace traind {

// Returns "3", or "3/2" for model 2 of fold 3, counted from 0; of another trial "3 trial 4".
std::string FoldName(const v1::Fold& fold);
// Returns the task in which the fold is trained, as Attempts name it: "fold-3-trial-4-seed-2".
std::string TaskOfFold(const v1::Fold& fold);
// Whether it is a model besides the fold's first: of another trial or another seed.
bool IsExtra(const v1::Fold& fold);
// Whether the fold's predictions exist.
bool IsTrained(const v1::Fold& fold);

// Number of folds, however many models each has; number of folds whose first model is trained.
int CountFolds(const v1::Job& job);
int TrainedFolds(const v1::Job& job);
// Number of trained models besides the folds' first ones.
int ExtraModels(const v1::Job& job);

}  // namespace traind
