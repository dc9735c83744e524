// Chooses the folds that a Job reuses from earlier ones, and provides their files.
#pragma once

#include <string>
#include <vector>

#include "server/domain/trained_fold.h"

namespace traind {

// Returns, for each fold that `wanted` asks for, the best one of all sources: a fully trained one,
// else the one trained longest, else the one of the earlier source; then the fully trained extra
// seeds (Spec::seeds). Pure.
std::vector<TrainedFold> ChooseFolds(const std::vector<Job>& sources, const Spec& wanted);

// Links the folds' files into the folder of `job`, under reused/<attempt>/ (hard links, or copies
// where links are impossible), so that they outlive their Job's folder; the returned paths are
// there. Each file is verified by its digest. A fold whose predictions are missing or damaged
// resumes from its checkpoint; one without an intact checkpoint is left out.
// Threads: safe.
std::vector<TrainedFold> LinkFolds(const std::string& state_dir, const std::string& job,
                                   std::vector<TrainedFold> folds);

}  // namespace traind
