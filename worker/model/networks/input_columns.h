// What every network starts with: numeric inputs and learnt embeddings of categorical
// ones, side by side.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "worker/model/networks/model.h"
#include "worker/model/networks/model_spec.h"
#include "worker/model/networks/parameters.h"

namespace traind {

// Parameters: embeddings.<i>.weight [cardinality, width].
// Threads: immutable. Errors: torch's exceptions.
class InputColumns {
 public:
  InputColumns(const ModelShape& shape, Parameters& parameters);

  // Columns of a time step.
  int64_t width() const { return width_; }
  // [B, width()], or [B, T, width()] of windows.
  at::Tensor Concatenate(const std::vector<at::Tensor>& weights, const Inputs& inputs) const;
  // [B, T, width()], also where T is 1.
  at::Tensor Sequence(const std::vector<at::Tensor>& weights, const Inputs& inputs) const;

  const std::vector<size_t>& embeddings() const { return embeddings_; }

 private:
  int64_t numeric_ = 0, window_ = 1, width_ = 0;
  std::vector<size_t> embeddings_;  // indices of parameters
};

// Width of the embedding of that many codes.
int64_t EmbeddingWidth(int64_t cardinality);

// A fully connected layer's parameters, which start as torch.nn.Linear's do: both
// uniform within 1 / sqrt(in). <name>.weight [out, in], <name>.bias [out].
struct LinearParameters {
  size_t weight = 0, bias = 0;
};
LinearParameters DeclareLinear(const std::string& name, int64_t in, int64_t out,
                               Parameters& parameters);

}  // namespace traind
