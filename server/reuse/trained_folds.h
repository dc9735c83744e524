// What a Job may take over from earlier ones: which folds, and their files.
#pragma once

#include <string>
#include <vector>

#include "server/domain/trained_fold.h"

namespace traind {

// Of each fold that `wanted` asks for the best of all sources: a whole one, else the
// one that was trained longest, the earlier source where they are alike; then of its extra
// seeds (Spec::seeds) the whole ones. Pure.
std::vector<TrainedFold> ChooseFolds(const std::vector<Job>& sources, const Spec& wanted);

// Puts their files into the folder of `job`, under reused/<attempt>/ (hard links, or
// copies where there can be none), so that they outlive their Job's folder; paths in
// what is returned are of there. Each file is verified by its digest: a fold whose
// predictions are gone or damaged is trained on from its checkpoint, one without a
// sound checkpoint is left out. Threads: safe.
std::vector<TrainedFold> TakeOver(const std::string& state_dir, const std::string& job,
                                  std::vector<TrainedFold> folds);

}  // namespace traind
