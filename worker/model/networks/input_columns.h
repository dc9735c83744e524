// The first step of every network: numeric inputs beside learnt embeddings of categorical
// inputs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "worker/model/networks/model.h"
#include "worker/model/networks/model_spec.h"
#include "worker/model/networks/parameters.h"

namespace traind {

// Concatenates the input columns of a batch.
// Parameters: embeddings.<i>.weight [cardinality, width].
// Threads: immutable. Errors: torch's exceptions.
class InputColumns {
 public:
  InputColumns(const ModelShape& shape, Parameters& parameters);

  // The number of columns per time step.
  int64_t width() const { return width_; }
  // Returns [B, width()], or [B, T, width()] for windows.
  at::Tensor Concatenate(const std::vector<at::Tensor>& weights, const Inputs& inputs) const;
  // Returns [B, T, width()], also if T is 1.
  at::Tensor Sequence(const std::vector<at::Tensor>& weights, const Inputs& inputs) const;

  const std::vector<size_t>& embeddings() const { return embeddings_; }

 private:
  int64_t numeric_ = 0, window_ = 1, width_ = 0;
  std::vector<size_t> embeddings_;  // indices of the parameters
};

// The width of an embedding of `cardinality` codes.
int64_t EmbeddingWidth(int64_t cardinality);

// Declares the parameters of a fully connected layer: <name>.weight [out, in] and <name>.bias
// [out]. Both start uniform within 1 / sqrt(in), as those of torch.nn.Linear do.
struct LinearParameters {
  size_t weight = 0, bias = 0;
};
LinearParameters DeclareLinear(const std::string& name, int64_t in, int64_t out,
                               Parameters& parameters);

}  // namespace traind
