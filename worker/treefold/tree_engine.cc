#include "worker/treefold/tree_engine.h"

#include "worker/treefold/tree_trainer.h"

namespace traind {

std::unique_ptr<FoldTrainer> TreeEngine::NewTrainer(const rank_protocol::Train& train,
                                                    TaskControl& control, EventSink& sink,
                                                    const Clock& clock) {
  return std::make_unique<TreeTrainer>(train, control, sink, clock);
}

}  // namespace traind
