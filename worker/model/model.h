// A network, and the list of those there are.
#pragma once

#include <ATen/core/Tensor.h>
#include <absl/status/statusor.h>

#include <memory>

#include "worker/model/model_spec.h"
#include "worker/model/parameters.h"

namespace traind {

// A batch as a model takes it.
struct Inputs {
  at::Tensor numeric;         // [B, shape.numeric] float32
  at::Tensor codes;           // [B, number of categorical inputs] int32
  uint64_t dropout_seed = 0;  // when training
};

// Threads: confined to one. Errors: torch's exceptions.
class Model {
 public:
  virtual ~Model() = default;
  // [B, shape.outputs]: logits, or the standardised value. B may be 0.
  virtual at::Tensor Forward(const Inputs& inputs, bool training) const = 0;
};

// Declares the parameters it needs; they are allocated before the first Forward.
// Ownership: parameters outlive the model.
// To add an architecture: one file with its factory, and a line in model.cc.
using ModelFactory = std::unique_ptr<Model> (*)(const ModelSpec&, const ModelShape&, Parameters&);
absl::StatusOr<std::unique_ptr<Model>> CreateModel(const ModelSpec& spec, const ModelShape& shape,
                                                   Parameters& parameters);

}  // namespace traind
