// The interface of a network, and the factory of all architectures.
#pragma once

#include <ATen/core/Tensor.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "worker/model/networks/model_spec.h"
#include "worker/model/networks/parameters.h"

namespace traind {

// A batch of inputs. T: shape.window.
struct Inputs {
  at::Tensor numeric;  // [B, shape.numeric] float32; T > 1: [B, T, shape.numeric], oldest first
  at::Tensor codes;    // [B, number of categorical inputs] int32; T > 1: [B, T, ...]
  // Media (worker/data/media_source.h); undefined if there are none.
  at::Tensor image;           // [B, C, H, W] or [B, C, D, H, W] float32, channels-last strides
  at::Tensor tokens;          // [all tokens] int32, sample after sample
  at::Tensor ends;            // [B] int32, on the CPU: where the tokens of each sample end
  uint64_t dropout_seed = 0;  // used in training only
  // In training, layers of the body with a smaller depth (ParameterInfo) run as in predictions:
  // without dropout and by their running statistics.
  int64_t fixed_below = 0;
};

class BodyModel;

// A network: it computes outputs from its weights, which the caller holds, and a batch of inputs.
// Threads: immutable, but for the switches, which must not run beside Forward().
// Errors: torch's exceptions.
class Model {
 public:
  virtual ~Model() = default;
  // Returns [members() x B, shape.outputs]: logits, or standardised values, member after member.
  // B may be 0. weights has one tensor per declared parameter, in the order of declaration.
  virtual at::Tensor Forward(const std::vector<at::Tensor>& weights, const Inputs& inputs,
                             bool training) const = 0;
  // What is trained: the output of Forward(training = true), and with deep supervision those of
  // lower levels behind it, each of half the extent of the one before. The loss of each level
  // counts half as much as that of the one before.
  virtual std::vector<at::Tensor> TrainingOutputs(const std::vector<at::Tensor>& weights,
                                                  const Inputs& inputs) const {
    return {Forward(weights, inputs, /*training=*/true)};
  }
  // The number of predictions that the model makes for a sample. It is trained on the mean of their
  // losses, and the mean of their answers is its answer.
  virtual int64_t members() const { return 1; }
  // Switches activation checkpointing on or off, block by block. Returns false if this model
  // does not support it.
  virtual bool SetRecompute(bool /*on*/) { return false; }
  // Whether a step on a GPU may be recorded and launched as one.
  virtual bool MayBeRecorded() const { return true; }
  // Passes written by hand in place of operators, where the model has some; true unless
  // said otherwise.
  virtual void UseLoops(bool /*on*/) {}
  // Null: no part of the network can be told from its head.
  virtual const BodyModel* body() const { return nullptr; }
  // Sets parameters whose initial values differ from those that were declared.
  virtual void Start(const Parameters& /*parameters*/) const {}
};

// A network whose last layers, its head, read one vector per sample from all before them, its body.
// The depths of parameters (ParameterInfo) tell the two apart.
class BodyModel : public Model {
 public:
  at::Tensor Forward(const std::vector<at::Tensor>& weights, const Inputs& inputs,
                     bool training) const final {
    return Head(weights, inputs, Body(weights, inputs, training), training);
  }
  const BodyModel* body() const final { return this; }
  virtual int64_t body_width() const = 0;  // D
  // Returns [B, D]. training: with dropout and the statistics of the batch.
  virtual at::Tensor Body(const std::vector<at::Tensor>& weights, const Inputs& inputs,
                          bool training) const = 0;
  // body: what Body() has returned; of the inputs only the columns are used.
  virtual at::Tensor Head(const std::vector<at::Tensor>& weights, const Inputs& inputs,
                          const at::Tensor& body, bool training) const = 0;
};

// Makes the network whose settings the spec has, and declares the parameters that it needs.
// To add a network: its settings in proto/job.proto, one file with its factory, a line in model.cc.
using ModelFactory = absl::StatusOr<std::unique_ptr<Model>> (*)(const ModelSpec&, const ModelShape&,
                                                                Parameters&);
absl::StatusOr<std::unique_ptr<Model>> CreateModel(const ModelSpec& spec, const ModelShape& shape,
                                                   Parameters& parameters);

}  // namespace traind
