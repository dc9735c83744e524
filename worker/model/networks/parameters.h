// A model's parameters, in one flat tensor.
#pragma once

#include <ATen/core/Tensor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <string>
#include <vector>

#include "worker/model/networks/parameter_layout.h"

namespace traind {

// How a parameter starts.
struct Initial {
  enum class Kind { kUniform, kNormal, kConstant } kind = Kind::kUniform;
  double scale = 0;       // kUniform: in [-scale, scale); kNormal: standard deviation;
                          // kConstant: the value
  int64_t zero_row = -1;  // this row starts (and, not being trained, stays) 0
};

// Parameters are leaves of autograd (buffers are not), [shape] float32, and views of one flat
// tensor, so that saving and restoring all of them is one copy. Each starts at a
// multiple of 64 bytes.
// Threads: confined to one. Order of calls: Declare..., Allocate, the rest.
class Parameters {
 public:
  // Returns its index.
  size_t Declare(std::string name, std::vector<int64_t> shape, Initial initial);
  // Values that are no parameter, such as running statistics: saved with the weights, and
  // changed by nothing but a forward pass in training. They stand behind all parameters.
  size_t DeclareBuffer(std::string name, std::vector<int64_t> shape, double value);
  void Allocate(c10::Device device);

  // The same values for the same seed, on any device.
  void Initialize(uint64_t seed);

  const at::Tensor& operator[](size_t index) const { return tensors_[index]; }
  const std::vector<at::Tensor>& tensors() const { return tensors_; }
  const at::Tensor& flat() const { return flat_; }
  // The part of flat() before the buffers, and the parameters in it.
  at::Tensor trained() const { return flat_.narrow(0, 0, trained_size_); }
  std::vector<at::Tensor> trained_tensors() const;
  // What follows it: the buffers.
  at::Tensor buffers() const;
  const ParameterLayout& layout() const { return layout_; }

  const std::vector<int64_t>& offsets() const { return offsets_; }  // in flat()

  // Views of another tensor of flat()'s size, shaped as the parameters and buffers are.
  std::vector<at::Tensor> ViewsOf(const at::Tensor& flat) const;

  // Moves the gradients that autograd left at the parameters into a tensor of
  // trained()'s size.
  void TakeGradients(const at::Tensor& flat) const;

  // Between a tensor of flat()'s or trained()'s size and values in the layout's order
  // without the gaps; of the latter, buffers count as 0.
  // REQUIRES: values.size() == TotalSize(layout()).
  std::vector<float> Pack(const at::Tensor& flat) const;
  void Unpack(absl::Span<const float> values, const at::Tensor& flat) const;

 private:
  ParameterLayout layout_;
  std::vector<Initial> initial_;
  std::vector<int64_t> offsets_;
  std::vector<bool> is_buffer_;
  int64_t trained_size_ = 0, buffer_size_ = 0;
  at::Tensor flat_;
  std::vector<at::Tensor> tensors_;
};

}  // namespace traind
