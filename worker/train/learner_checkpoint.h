// The Learner's part of a checkpoint: weights, the optimizer's state and the loss scale.
// Threads: safe, pure.
#pragma once

#include "worker/checkpoint/checkpoint.h"
#include "worker/learner/learner.h"

namespace traind {

// Puts the state into the checkpoint, which owns it from then on. REQUIRES: has_best says
// whether the best weights are of a measured epoch; others are left out.
void PutLearnerState(Learner::State state, Checkpoint& checkpoint);

// Returns the state that PutLearnerState has put there. Where it has no best weights, the weights
// take their place.
Learner::State LearnerStateOf(const Checkpoint& checkpoint);

}  // namespace traind
