// Networks as what a program trains and predicts with: trainrank's Engine.
#pragma once

#include <functional>
#include <memory>

#include "worker/task/engine.h"

namespace traind {

// Threads: those of Engine.
class NetworkEngine final : public Engine {
 public:
  std::unique_ptr<FoldTrainer> NewTrainer(const rank_protocol::Train& train, TaskControl& control,
                                          EventSink& sink, const Clock& clock) override;
  absl::Status Predict(const rank_protocol::Predict& predict, InferenceControl& control,
                       EventSink& sink, const Clock& clock) override;
  absl::Status Serve(const rank_protocol::Serve& serve, InferenceControl& control, EventSink& sink,
                     const Clock& clock) override;
  // LibTorch's exceptions, too, tell what ended the task.
  absl::Status Guard(const std::function<absl::Status()>& task) override;
  void ReleaseMemory() override;

 private:
  bool used_gpu_ = false;
};

}  // namespace traind
