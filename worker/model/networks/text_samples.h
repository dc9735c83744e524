#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "worker/model/networks/model.h"

namespace traind {

// The assignment of a batch's tokens to samples, for everything but attention.
struct TextSamples {
  std::vector<int64_t> ends;
  at::Tensor sample_of_token, place;  // [N] int64: the token's sample, and its place in it
  at::Tensor first;                   // [B] int64: the index of each sample's first token
  at::Tensor share;                   // [B, 1] float32: 1 / length
};

// All but ends are on the tokens' device.
TextSamples TextSamplesOf(const Inputs& inputs);

}  // namespace traind
