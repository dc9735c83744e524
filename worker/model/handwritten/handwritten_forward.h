// Prediction without LibTorch's operators, for networks so small that calling an operator takes
// longer than its arithmetic.
#pragma once

#include <cstdint>
#include <memory>

#include "worker/model/handwritten/handwritten_backward.h"

namespace traind {

struct ForwardInput {
  const float* weights = nullptr;  // flat, as Parameters keeps them
  // Rows as the learner stores them. The samples are rows[0 .. count), or first, first +
  // 1, ... if rows is null.
  const float* numeric = nullptr;
  const int32_t* codes = nullptr;
  const int32_t* rows = nullptr;
  int64_t first = 0, count = 0;
  // Allows products of values rounded to bf16, where the processor has instructions for it. It is
  // meant for many rows.
  bool half = false;
};

// Computes a network's outputs for some rows.
// Threads: confined to one. Errors: std::bad_alloc.
class HandwrittenForward {
 public:
  virtual ~HandwrittenForward() = default;
  // outputs: [count, shape.outputs] float32, equal to those of Model::Forward; with `half`,
  // nearly so.
  virtual void Run(const ForwardInput& input, float* outputs) = 0;
};

// Uses only the setup's model, shape, horizon, layout and offsets. Returns null if there is no
// handwritten forward pass for the model.
std::unique_ptr<HandwrittenForward> CreateHandwrittenForward(const HandwrittenSetup& setup);

}  // namespace traind
