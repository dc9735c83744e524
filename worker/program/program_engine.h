#pragma once

#include <memory>

#include "worker/task/engine.h"

namespace traind {

// Runs programs of users as folds.
class ProgramEngine final : public Engine {
 public:
  std::unique_ptr<FoldTrainer> NewTrainer(const rank_protocol::Train& train, TaskControl& control,
                                          EventSink& sink, const Clock& clock) override;
};

}  // namespace traind
