// A network, and the list of those there are.
#pragma once

#include <ATen/core/Tensor.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "worker/model/networks/model_spec.h"
#include "worker/model/networks/parameters.h"

namespace traind {

// A batch as a model takes it. T: shape.window.
struct Inputs {
  at::Tensor numeric;  // [B, shape.numeric] float32; T > 1: [B, T, shape.numeric], oldest first
  at::Tensor codes;    // [B, number of categorical inputs] int32; T > 1: [B, T, ...]
  // Of media (worker/data/media_source.h); undefined where there is none.
  at::Tensor image;           // [B, C, H, W] or [B, C, D, H, W] float32, channels-last strides
  at::Tensor tokens;          // [all samples' tokens] int32, sample after sample
  at::Tensor ends;            // [B] int32, on the CPU: where each sample's tokens end
  uint64_t dropout_seed = 0;  // when training
};

// Threads: immutable. Errors: torch's exceptions.
class Model {
 public:
  virtual ~Model() = default;
  // [B, shape.outputs]: logits, or standardised values. B may be 0. weights: one per
  // declared parameter, in the order of their declaration.
  virtual at::Tensor Forward(const std::vector<at::Tensor>& weights, const Inputs& inputs,
                             bool training) const = 0;
  // Activations are computed again in the backward pass instead of being kept, block by
  // block. false: this model cannot do that.
  virtual bool SetRecompute(bool /*on*/) { return false; }
  // Whether a step on a GPU may be recorded and launched as one.
  virtual bool MayBeRecorded() const { return true; }
  // Passes written by hand in place of operators, where the model has some; true unless
  // said otherwise.
  virtual void UseLoops(bool /*on*/) {}
  // Sets what starts otherwise than as it was declared.
  virtual void Start(const Parameters& /*parameters*/) const {}
};

// Makes the network whose settings the spec has, and declares the parameters that it needs.
// To add a network: its settings in proto/job.proto, one file with its factory, a line in model.cc.
using ModelFactory = absl::StatusOr<std::unique_ptr<Model>> (*)(const ModelSpec&, const ModelShape&,
                                                                Parameters&);
absl::StatusOr<std::unique_ptr<Model>> CreateModel(const ModelSpec& spec, const ModelShape& shape,
                                                   Parameters& parameters);

}  // namespace traind
