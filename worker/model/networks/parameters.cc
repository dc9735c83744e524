#include "worker/model/networks/parameters.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <absl/strings/match.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "worker/data/random.h"

namespace traind {
namespace {

constexpr int64_t kAlignment = 16;  // elements: 64 bytes

// As timm and transformers have it.
bool Decays(const ParameterInfo& info) {
  return info.shape.size() > 1 && !absl::EndsWith(info.name, ".bias");
}

int64_t Aligned(int64_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

double Draw(Initial::Kind kind, Random& random) {
  switch (kind) {
    case Initial::Kind::kUniform:
      return 2 * random.Uniform() - 1;
    case Initial::Kind::kNormal:
      return random.Normal();
    case Initial::Kind::kConstant:
      return 1;
    case Initial::Kind::kSign:
      return random.Uniform() < 0.5 ? -1 : 1;
  }
  return 0;
}

}  // namespace

size_t Parameters::Declare(std::string name, std::vector<int64_t> shape, Initial initial) {
  ParameterInfo info{std::move(name), std::move(shape), 1};
  for (const int64_t extent : info.shape) info.size *= extent;
  info.depth = depth_;
  info.decays = Decays(info);
  layout_.push_back(std::move(info));
  initial_.push_back(initial);
  kinds_.push_back(Kind::kTrained);
  return layout_.size() - 1;
}

size_t Parameters::DeclareBuffer(std::string name, std::vector<int64_t> shape, double value) {
  const size_t index =
      Declare(std::move(name), std::move(shape), {Initial::Kind::kConstant, value});
  kinds_[index] = Kind::kBuffer;
  return index;
}

void Parameters::Allocate(c10::Device device) {
  offsets_.resize(layout_.size());
  int64_t size = 0;
  for (const Kind kind : {Kind::kTrained, Kind::kBuffer, Kind::kFixed}) {
    for (size_t i = 0; i < layout_.size(); ++i) {
      if (kinds_[i] != kind) continue;
      offsets_[i] = size;
      size += Aligned(layout_[i].size);
    }
    if (kind == Kind::kTrained) trained_size_ = size;
    if (kind == Kind::kBuffer) buffer_size_ = size - trained_size_;
  }
  flat_ = at::zeros({size}, at::TensorOptions(device).dtype(at::kFloat));
  tensors_ = ViewsOf(flat_);
  for (size_t i = 0; i < tensors_.size(); ++i) {
    tensors_[i] = tensors_[i].detach().set_requires_grad(kinds_[i] == Kind::kTrained);
  }
}

std::vector<at::Tensor> Parameters::trained_tensors() const {
  std::vector<at::Tensor> trained;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].requires_grad()) trained.push_back(tensors_[i]);
  }
  return trained;
}

void Parameters::TrainFrom(int64_t layer) {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (kinds_[i] == Kind::kTrained && layout_[i].depth != kHeadDepth)
      tensors_[i].set_requires_grad(layout_[i].depth >= layer);
  }
}

int64_t Parameters::layers() const {
  int64_t layers = 0;
  for (const ParameterInfo& info : layout_) layers = std::max(layers, info.depth + 1);
  return layers;
}

void Parameters::Initialize(uint64_t seed) {
  std::vector<float> values;
  values.reserve(static_cast<size_t>(TotalSize(layout_)));
  for (size_t i = 0; i < layout_.size(); ++i) {
    Random random(StreamSeed(seed, Stream::kWeights, i));
    const Initial& initial = initial_[i];
    const size_t begin = values.size();
    for (int64_t k = 0; k < layout_[i].size; ++k) {
      values.push_back(static_cast<float>(initial.scale * Draw(initial.kind, random)));
    }
    if (initial.zero_row >= 0) {
      const int64_t row = layout_[i].size / layout_[i].shape[0];
      std::fill_n(values.begin() + static_cast<int64_t>(begin) + initial.zero_row * row, row, 0.0f);
    }
  }
  Unpack(values, flat_);
}

std::vector<at::Tensor> Parameters::ViewsOf(const at::Tensor& flat) const {
  std::vector<at::Tensor> views;
  views.reserve(layout_.size());
  for (size_t i = 0; i < layout_.size(); ++i) {
    views.push_back(flat.narrow(0, offsets_[i], layout_[i].size).view(layout_[i].shape));
  }
  return views;
}

void Parameters::MoveGradientsTo(const at::Tensor& flat) const {
  const c10::AutoGradMode no_gradients(false);
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!tensors_[i].requires_grad()) continue;
    const at::Tensor target = flat.narrow(0, offsets_[i], layout_[i].size).view(layout_[i].shape);
    target.copy_(tensors_[i].grad());
    // Reset rather than zeroed, so that autograd stores its own tensors
    // instead of adding to these.
    tensors_[i].mutable_grad().reset();
  }
}

std::vector<float> Parameters::Pack(const at::Tensor& flat) const {
  const at::Tensor host = flat.cpu();
  const float* source = host.const_data_ptr<float>();
  std::vector<float> values;
  values.reserve(static_cast<size_t>(TotalSize(layout_)));
  for (size_t i = 0; i < layout_.size(); ++i) {
    if (offsets_[i] >= flat.numel()) {
      values.insert(values.end(), static_cast<size_t>(layout_[i].size), 0.0f);
    } else {
      values.insert(values.end(), source + offsets_[i], source + offsets_[i] + layout_[i].size);
    }
  }
  return values;
}

void Parameters::Unpack(absl::Span<const float> values, const at::Tensor& flat) const {
  const c10::AutoGradMode no_gradients(false);
  at::Tensor host = at::zeros({flat.numel()}, at::TensorOptions().dtype(at::kFloat));
  float* target = host.mutable_data_ptr<float>();
  const float* source = values.data();
  for (size_t i = 0; i < layout_.size(); ++i) {
    if (offsets_[i] < flat.numel()) std::copy_n(source, layout_[i].size, target + offsets_[i]);
    source += layout_[i].size;
  }
  flat.copy_(host);
}

}  // namespace traind
