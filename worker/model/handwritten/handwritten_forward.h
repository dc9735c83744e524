// Prediction without LibTorch's operators, for networks so small that calling those takes
// longer than their arithmetic.
#pragma once

#include <cstdint>
#include <memory>

#include "worker/model/handwritten/handwritten_backward.h"

namespace traind {

struct ForwardInput {
  const float* weights = nullptr;  // flat, as Parameters keeps them
  // Rows as the learner keeps them; the samples are those of rows[0 .. count), or of
  // first, first + 1, ... where rows is null.
  const float* numeric = nullptr;
  const int32_t* codes = nullptr;
  const int32_t* rows = nullptr;
  int64_t first = 0, count = 0;
};

// Threads: confined to one. Errors: std::bad_alloc.
class HandwrittenForward {
 public:
  virtual ~HandwrittenForward() = default;
  // outputs: [count, shape.outputs], as Model::Forward makes them, float32.
  virtual void Run(const ForwardInput& input, float* outputs) = 0;
};

// Of the setup only model, shape, horizon, layout and offsets are used. Null where there
// is none for the model.
std::unique_ptr<HandwrittenForward> CreateHandwrittenForward(const HandwrittenSetup& setup);

}  // namespace traind
