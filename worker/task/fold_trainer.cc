#include "worker/task/fold_trainer.h"

#include "common/base/status_macros.h"

namespace traind {

absl::Status TrainFold(FoldTrainer& trainer) {
  RETURN_IF_ERROR(trainer.Start());
  const absl::StatusOr<Ending> ending = trainer.TrainUntilStopped();
  if (!ending.ok()) {
    trainer.Rescue();
    return ending.status();
  }
  return trainer.Finish(*ending);
}

}  // namespace traind
