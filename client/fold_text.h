// Counts and names folds and their models.
// Threads: safe, pure.
#pragma once

#include <string>

#include "proto/job.pb.h"

namespace traind {

// Returns "3", or "3/2" for model 2 of fold 3, counted from 0.
std::string FoldName(const v1::Fold& fold);
// Whether the fold's predictions exist.
bool IsTrained(const v1::Fold& fold);

// Number of folds, however many models each has; number of folds whose first model is trained.
int CountFolds(const v1::Job& job);
int TrainedFolds(const v1::Job& job);
// Number of trained models besides the folds' first ones.
int ExtraSeeds(const v1::Job& job);

}  // namespace traind
