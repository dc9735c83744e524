#include "worker/train/learner_checkpoint.h"

#include <memory>
#include <utility>

namespace traind {

void PutLearnerState(Learner::State state, Checkpoint& c) {
  c.optimizer_steps = state.optimizer_steps;
  c.body_steps = state.body_steps;
  c.layer_steps = state.layer_steps;
  c.averaged = state.averaged;
  c.loss_scale = state.loss_scale;
  c.growth_tracker = state.growth_tracker;
  const auto held = std::make_shared<const Learner::State>(std::move(state));
  for (const auto& [slot, values] : held->slots) {
    if (slot != kBestWeightsSlot || c.has_best) c.slots[slot] = values;
  }
  c.owner = held;
}

Learner::State LearnerStateOf(const Checkpoint& c) {
  Learner::State state;
  for (const auto& [slot, values] : c.slots) {
    state.slots[slot].assign(values.begin(), values.end());
  }
  if (state.slots.count(kBestWeightsSlot) == 0) {
    state.slots[kBestWeightsSlot] = state.slots[kWeightsSlot];
  }
  state.optimizer_steps = c.optimizer_steps;
  state.body_steps = c.body_steps;
  state.layer_steps = c.layer_steps;
  state.averaged = c.averaged;
  state.loss_scale = c.loss_scale;
  state.growth_tracker = c.growth_tracker;
  return state;
}

}  // namespace traind
