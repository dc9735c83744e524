#include "worker/task/fold_trainer.h"

#include "common/base/status_macros.h"

namespace traind {

const char* StopCauseName(StopCause cause) {
  switch (cause) {
    case StopCause::kNone:
      return "";
    case StopCause::kEpochs:
      return "epochs";
    case StopCause::kPatience:
      return "patience";
    case StopCause::kTime:
      return "time";
    case StopCause::kUser:
      return "user";
  }
  return "";
}

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
