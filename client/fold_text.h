// Folds and their models, as trainctl counts and names them.
// Threads: safe, pure.
#pragma once

#include <string>

#include "proto/job.pb.h"

namespace traind {

// "3", or "3/2": model 2 of fold 3, counted from 0.
std::string FoldName(const v1::Fold& fold);
// Its predictions are there.
bool IsTrained(const v1::Fold& fold);

// Folds, whatever models each has; those of them whose first model is trained.
int CountFolds(const v1::Job& job);
int TrainedFolds(const v1::Job& job);
// Trained models besides the folds' first ones.
int ExtraSeeds(const v1::Job& job);

}  // namespace traind
