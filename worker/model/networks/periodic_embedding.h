// Embeddings of numbers by periodic functions.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "worker/model/networks/model_spec.h"
#include "worker/model/networks/parameters.h"

namespace traind {

// Each number x becomes [x, linear(cos(2 pi x w + b))], with w, b and the linear layer learnt for
// its column alone: PBLD (Holzmueller, Grinsztajn, Steinwart 2024), after Gorishniy, Rubachev,
// Babenko 2022. Small differences of a number can then change the output much.
// Parameters: numbers.frequencies, numbers.phases [columns, 1, frequencies], numbers.weight
// [columns, frequencies, size - 1], numbers.bias [columns, 1, size - 1].
// Threads: immutable. Errors: torch's exceptions.
class PeriodicEmbedding {
 public:
  PeriodicEmbedding(const plain::NumericEmbeddingSpec& spec, int64_t columns,
                    Parameters& parameters);

  // The number of values that all columns of a time step become.
  int64_t width() const { return columns_ * size_; }
  // numeric: [..., columns] float32. Returns [..., width()].
  at::Tensor Embed(const std::vector<at::Tensor>& weights, const at::Tensor& numeric) const;

 private:
  const int64_t columns_, size_;
  size_t frequencies_ = 0, phases_ = 0, weight_ = 0, bias_ = 0;
};

}  // namespace traind
