// Loops over plain float arrays for which LibTorch has no fused operator. Each is compiled for
// several instruction sets; the one to use is chosen when the program starts.
#pragma once

#include <cstdint>

namespace traind {

// The sum of squares, added up in double over blocks.
double SumOfSquares(const float* values, int64_t size);

struct AdamStep {
  double learning_rate = 0;
  double weight_decay = 0;
  bool decoupled = true;  // AdamW
  double beta1 = 0, beta2 = 0, eps = 0;
  double correction1 = 1, correction2 = 1;  // 1 - beta^step
  double gradient_scale = 1;                // multiplies the gradients first
};
void AdamLoop(const AdamStep& step, const float* gradient, float* weights, float* exp_avg,
              float* exp_avg_sq, int64_t size);

struct SgdStep {
  double learning_rate = 0;
  double weight_decay = 0;
  double momentum = 0;
  bool nesterov = false;
  double gradient_scale = 1;
};
// momentum_buffer is null if momentum is 0.
void SgdLoop(const SgdStep& step, const float* gradient, float* weights, float* momentum_buffer,
             int64_t size);

struct RmsPropStep {
  double learning_rate = 0;
  double weight_decay = 0;
  double alpha = 0, eps = 0;
  double momentum = 0;
  double gradient_scale = 1;
};
// momentum_buffer is null if momentum is 0.
void RmsPropLoop(const RmsPropStep& step, const float* gradient, float* weights, float* square_avg,
                 float* momentum_buffer, int64_t size);

// average = decay x average + (1 - decay) x weights
void EmaLoop(double decay, const float* weights, float* average, int64_t size);

}  // namespace traind
