// Forward and backward passes written out by hand: buffers allocated once, no graph,
// element-wise work fused between matrix products, no gradient for what has no
// parameter. For networks and options that a file handwritten_<network>.cc knows; the others
// are trained by autograd.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "worker/data/media_source.h"
#include "worker/device/precision.h"
#include "worker/model/networks/model_spec.h"
#include "worker/model/networks/parameter_layout.h"
#include "worker/model/objective/objective_gradient.h"

namespace traind {

// The data of a pass. The pointers stay valid as long as the pass; all memory is the CPU's.
struct HandwrittenSetup {
  ModelSpec model;
  ModelShape shape;
  int64_t horizon = 0;
  Precision precision = Precision::kFp32;
  ObjectiveGradient* objective = nullptr;
  const float* numeric = nullptr;  // [N, shape.numeric]
  const int32_t* codes = nullptr;  // [N, categorical inputs]
  const float* weights = nullptr;  // flat, as Parameters keeps them
  const ParameterLayout* layout = nullptr;
  std::vector<int64_t> offsets;  // of each parameter in the flat weights

  // Returns the offset of a parameter. REQUIRES: the layout has it.
  int64_t Offset(const std::string& name) const;
  // Returns the offset of the last `rows` rows of a parameter.
  int64_t OffsetOfLast(const std::string& name, int64_t rows) const;
};

struct HandwrittenInput {
  const int32_t* rows = nullptr;  // [count]
  int64_t count = 0;              // > 0
  double weight = 1;              // factor of the mean loss in the gradient
  uint64_t dropout_seed = 0;
  const MediaBatch* media = nullptr;  // media of these rows; null: there are none
};

struct HandwrittenResult {
  double loss_sum = 0;  // over rows
  double gather_s = 0;  // time spent on gathering the batch
};

// Computes the loss of a batch and its gradient by all weights.
// Threads: confined to one. Errors: torch's exceptions, std::bad_alloc.
class HandwrittenBackward {
 public:
  virtual ~HandwrittenBackward() = default;
  // gradient: flat like the weights; overwritten where there are parameters.
  virtual HandwrittenResult Run(const HandwrittenInput& input, float* gradient) = 0;
  // Switches activation checkpointing on or off, layer by layer. Returns false if this pass
  // does not support it.
  virtual bool SetRecompute(bool /*on*/) { return false; }
};

// Returns null if there is no handwritten pass for the setup.
std::unique_ptr<HandwrittenBackward> CreateHandwrittenBackward(const HandwrittenSetup& setup);

}  // namespace traind
