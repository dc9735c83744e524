#include "worker/program/program_engine.h"

#include "worker/program/program_trainer.h"

namespace traind {

std::unique_ptr<FoldTrainer> ProgramEngine::NewTrainer(const rank_protocol::Train& train,
                                                       TaskControl& control, EventSink& sink,
                                                       const Clock& clock) {
  return std::make_unique<ProgramTrainer>(train, control, sink, clock);
}

}  // namespace traind
