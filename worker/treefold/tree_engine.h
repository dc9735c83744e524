// Boosted trees as what a program trains: traintree's Engine.
#pragma once

#include <memory>

#include "worker/task/engine.h"

namespace traind {

// Threads: those of Engine.
class TreeEngine final : public Engine {
 public:
  std::unique_ptr<FoldTrainer> NewTrainer(const rank_protocol::Train& train, TaskControl& control,
                                          EventSink& sink, const Clock& clock) override;
};

}  // namespace traind
