#include "worker/rank/network_engine.h"

#include "worker/device/cuda_api.h"
#include "worker/device/guard.h"
#include "worker/inference/dataset_prediction.h"
#include "worker/inference/row_server.h"
#include "worker/task/failure.h"
#include "worker/train/trainer.h"

namespace traind {

std::unique_ptr<FoldTrainer> NetworkEngine::NewTrainer(const rank_protocol::Train& train,
                                                       TaskControl& control, EventSink& sink,
                                                       const Clock& clock) {
  used_gpu_ |= train.device == "cuda";
  return std::make_unique<Trainer>(train, control, sink, clock);
}

absl::Status NetworkEngine::Predict(const rank_protocol::Predict& predict,
                                    InferenceControl& control, EventSink& sink,
                                    const Clock& clock) {
  return DatasetPrediction(predict, control, sink, clock).Run();
}

absl::Status NetworkEngine::Serve(const rank_protocol::Serve& serve, InferenceControl& control,
                                  EventSink& sink, const Clock& clock) {
  return RowServer(serve, control, sink, clock).Run();
}

absl::Status NetworkEngine::Guard(const std::function<absl::Status()>& task) {
  const absl::Status status = Guarded(task);
  switch (FaultOf(status)) {
    case Fault::kOutOfMemory:
      return OutOfMemory(status);
    case Fault::kCollective:
      return CollectiveTimeout(status);
    case Fault::kNone:
    case Fault::kOther:
      break;
  }
  return status;
}

void NetworkEngine::ReleaseMemory() {
  Engine::ReleaseMemory();
  if (!used_gpu_) return;
  if (const auto cuda = LoadCuda(); cuda.ok()) (*cuda)->EmptyCache();
}

}  // namespace traind
