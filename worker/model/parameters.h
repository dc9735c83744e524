// A model's parameters, in one flat tensor.
#pragma once

#include <ATen/core/Tensor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <string>
#include <vector>

#include "worker/model/parameter_layout.h"

namespace traind {

// How a parameter starts.
struct Initial {
  enum class Kind { kUniform, kNormal, kConstant } kind = Kind::kUniform;
  double scale = 0;       // kUniform: in [-scale, scale); kNormal: standard deviation;
                          // kConstant: the value
  int64_t zero_row = -1;  // this row starts (and, not being trained, stays) 0
};

// Parameters are leaves of autograd, [shape] float32, and views of one flat
// tensor, so that saving and restoring all of them is one copy. Each starts at a
// multiple of 64 bytes.
// Threads: confined to one. Order of calls: Declare..., Allocate, the rest.
class Parameters {
 public:
  // Returns its index.
  size_t Declare(std::string name, std::vector<int64_t> shape, Initial initial);
  void Allocate(c10::Device device);

  // The same values for the same seed, on any device.
  void Initialize(uint64_t seed);

  const at::Tensor& operator[](size_t index) const { return tensors_[index]; }
  const std::vector<at::Tensor>& tensors() const { return tensors_; }
  const at::Tensor& flat() const { return flat_; }
  const ParameterLayout& layout() const { return layout_; }

  const std::vector<int64_t>& offsets() const { return offsets_; }  // in flat()

  // Views of another tensor of flat()'s size, shaped as the parameters are.
  std::vector<at::Tensor> ViewsOf(const at::Tensor& flat) const;

  // Moves the gradients that autograd left at the parameters into a tensor of
  // flat()'s size.
  void TakeGradients(const at::Tensor& flat) const;

  // Between a tensor of flat()'s size and values in the layout's order without
  // the gaps. REQUIRES: values.size() == TotalSize(layout()).
  std::vector<float> Pack(const at::Tensor& flat) const;
  void Unpack(absl::Span<const float> values, const at::Tensor& flat) const;

 private:
  ParameterLayout layout_;
  std::vector<Initial> initial_;
  std::vector<int64_t> offsets_;
  int64_t flat_size_ = 0;
  at::Tensor flat_;
  std::vector<at::Tensor> tensors_;
};

}  // namespace traind
