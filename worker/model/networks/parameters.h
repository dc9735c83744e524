// A model's parameters in one flat tensor.
#pragma once

#include <ATen/core/Tensor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <string>
#include <vector>

#include "worker/model/networks/parameter_layout.h"

namespace traind {

// The initial value of a parameter.
struct Initial {
  enum class Kind { kUniform, kNormal, kConstant, kSign } kind = Kind::kUniform;
  double scale = 0;       // kUniform: range [-scale, scale); kNormal: standard deviation;
                          // kConstant: the value; kSign: its absolute value
  int64_t zero_row = -1;  // index of a row that starts at 0 and is never trained; -1: none
};

// Parameters are leaves of autograd (buffers are not), [shape] float32. They are views of one
// flat tensor, so saving or restoring all of them is one copy. Each starts at
// a multiple of 64 bytes.
// Threads: confined to one. Call order: Declare..., Allocate, all others.
// Errors: torch's exceptions.
class Parameters {
 public:
  // The layer of the parameters that are declared from now on (ParameterInfo::depth).
  void SetDepth(int64_t depth) { depth_ = depth; }
  // The parameter takes no weight decay, although its shape is that of one that does.
  void SetNoDecay(size_t index) { layout_[index].decays = false; }
  // Returns the parameter's index.
  size_t Declare(std::string name, std::vector<int64_t> shape, Initial initial);
  // Declares a buffer: values that are not trained, such as running statistics. They are saved
  // with the weights, and only a forward pass in training changes them. In the flat tensor they
  // come after all parameters.
  size_t DeclareBuffer(std::string name, std::vector<int64_t> shape, double value);
  // The parameter keeps its initial or loaded value: it is no leaf of autograd, has no gradient and
  // no state of the optimizer. It is saved with the weights.
  void Fix(size_t index) { kinds_[index] = Kind::kFixed; }
  bool IsBuffer(size_t index) const { return kinds_[index] == Kind::kBuffer; }
  void Allocate(c10::Device device);

  // Sets the initial values. The same seed gives the same values on any device.
  void Initialize(uint64_t seed);

  const at::Tensor& operator[](size_t index) const { return tensors_[index]; }
  const std::vector<at::Tensor>& tensors() const { return tensors_; }
  const at::Tensor& flat() const { return flat_; }
  // From now on autograd makes gradients for the head and for the layers of the body from this one
  // on.
  void TrainFrom(int64_t layer);
  // Of the body: 1 + the largest depth of a parameter.
  int64_t layers() const;
  // The part of flat() before the buffers, and the parameters in it.
  at::Tensor trained() const { return flat_.narrow(0, 0, trained_size_); }
  std::vector<at::Tensor> trained_tensors() const;  // without those that are not trained now
  // The part of flat() after the parameters, without what is fixed, which comes last.
  at::Tensor buffers() const { return BuffersOf(flat_); }
  at::Tensor BuffersOf(const at::Tensor& flat) const {
    return flat.narrow(0, trained_size_, buffer_size_);
  }
  const ParameterLayout& layout() const { return layout_; }

  const std::vector<int64_t>& offsets() const { return offsets_; }  // in flat()

  // Views of another tensor of flat()'s size, with the shapes of the parameters and buffers.
  std::vector<at::Tensor> ViewsOf(const at::Tensor& flat) const;

  // Moves the gradients that autograd left on the parameters into `flat`, a tensor of
  // trained()'s size. The places of parameters that are not trained now stay as they are.
  void MoveGradientsTo(const at::Tensor& flat) const;

  // Convert between a tensor of flat()'s or trained()'s size and values in the layout's order
  // without gaps. In a tensor of trained()'s size, buffers count as 0.
  // REQUIRES: values.size() == TotalSize(layout()).
  std::vector<float> Pack(const at::Tensor& flat) const;
  void Unpack(absl::Span<const float> values, const at::Tensor& flat) const;

 private:
  enum class Kind { kTrained, kBuffer, kFixed };

  ParameterLayout layout_;
  std::vector<Initial> initial_;
  std::vector<int64_t> offsets_;
  std::vector<Kind> kinds_;
  int64_t trained_size_ = 0, buffer_size_ = 0;
  int64_t depth_ = kHeadDepth;
  at::Tensor flat_;
  std::vector<at::Tensor> tensors_;
};

}  // namespace traind
