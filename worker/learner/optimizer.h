// Optimizers that update all parameters of a model at once.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "worker/learner/optimizer_settings.h"

namespace traind {

// Consecutive weights that are updated in one way.
struct OptimizerPart {
  int64_t begin = 0, end = 0;
  double rate = 1;     // factor of the learning rate
  bool decays = true;  // takes the weight decay
  int64_t layer = -1;  // of the body, from 0; below 0: the head
};

// Gradients and state are flat tensors like the weights (Parameters::flat()). Their gaps hold
// zeros and stay zero.
// Threads: confined to one. Errors: torch's exceptions.
class Optimizer {
 public:
  // weights: [size] float32. parts: all of them, in order. fused: on the CPU a loop of our own does
  // the whole step of a part; otherwise, and on GPUs, torch's operators do.
  Optimizer(const OptimizerSettings& spec, at::Tensor weights, std::vector<OptimizerPart> parts,
            bool fused);

  // gradient: [size] float32; may be changed. clip_norm: gradients with a larger L2 norm are
  // scaled down to it; 0: no clipping. found_inf: [1] float32, 1 skips the step
  // (fp16, see LossScaler).
  void Step(const at::Tensor& gradient, double learning_rate, double clip_norm,
            const std::optional<at::Tensor>& found_inf);

  // GPUs: from now on the learning rate is read from this [] float32 tensor, and Step()'s is
  // ignored. An undefined tensor restores Step()'s.
  void SetRateTensor(at::Tensor rate) { rate_ = std::move(rate); }

  // From now on the weights and state of the layers before this one stay, their gradients are not
  // read, and no step counts as one of theirs. 0: all layers are trained.
  void TrainFrom(int64_t layer) { first_layer_ = layer; }
  // The parts of a gradient that steps read now; neighbours are one.
  std::vector<at::Tensor> Moving(const at::Tensor& gradient) const;

  // The state for a checkpoint, by PyTorch's names: [size] float32 each.
  const std::map<std::string, at::Tensor>& slots() const { return slots_; }
  // Gradient norm of the last step before clipping; 0 without clipping. Waits for the device.
  double gradient_norm() const;
  // Number of steps, without skipped ones. Waits for the device.
  int64_t steps() const;
  int64_t body_steps() const;  // those that have trained the body's last layer
  // Those that have trained each layer of the body. Waits for the device.
  std::vector<int64_t> layer_steps() const;
  // layer_steps: of each layer; of another number of layers: all have body_steps.
  void set_steps(int64_t steps, int64_t body_steps, const std::vector<int64_t>& layer_steps);

 private:
  // All parts that are updated in one way, as views.
  struct Group {
    OptimizerPart like;
    std::vector<at::Tensor> weights;
    std::map<std::string, std::vector<at::Tensor>> slots;
  };
  // Of the slot that only some settings have; else empty.
  static at::TensorList SlotOf(const Group& group, const char* name);

  void MakeGroups();
  void FusedStep(const OptimizerPart& part, const float* gradient, double learning_rate,
                 double gradient_scale);
  void OperatorStep(const at::Tensor& gradient, double learning_rate,
                    const std::optional<at::Tensor>& scale,
                    const std::optional<at::Tensor>& found_inf);
  std::vector<at::Tensor> ViewsOf(const OptimizerPart& like, const at::Tensor& flat) const;
  void GroupStep(const Group& group, const at::Tensor& gradient, double learning_rate,
                 const std::optional<at::Tensor>& scale,
                 const std::optional<at::Tensor>& found_inf);
  void RmsPropOperators(const Group& group, size_t part, at::Tensor gradient, double learning_rate,
                        const std::optional<at::Tensor>& scale,
                        const std::optional<at::Tensor>& found_inf);
  float* SlotData(const char* name, int64_t begin) const;
  bool Moves(const OptimizerPart& part) const {
    return part.layer < 0 || part.layer >= first_layer_;
  }
  // [] float32, on the device. layer below 0: the head's.
  at::Tensor StepsOf(int64_t layer) const { return steps_.select(0, layer < 0 ? layers_ : layer); }
  double DecayOf(const OptimizerPart& part) const { return part.decays ? spec_.weight_decay : 0; }

  const OptimizerSettings spec_;
  const at::Tensor weights_;
  const std::vector<OptimizerPart> parts_;
  const bool fused_;
  int64_t layers_ = 0, first_layer_ = 0;  // of the body; the first one that is trained
  std::map<std::string, at::Tensor> slots_;
  std::vector<Group> groups_;
  double norm_ = 0;
  at::Tensor device_norm_;  // [] float32, used instead on a GPU
  at::Tensor rate_;
  at::Tensor steps_;  // [layers + 1] float32, on the device: of each layer, and of the head
};

}  // namespace traind
