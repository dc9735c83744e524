#include "worker/model/networks/input_columns.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "worker/data/row_encoder.h"

namespace traind {

InputColumns::InputColumns(const ModelShape& shape, Parameters& parameters)
    : numeric_(shape.numeric), window_(shape.window), width_(shape.numeric) {
  for (size_t i = 0; i < shape.cardinalities.size(); ++i) {
    const int64_t embedding = EmbeddingWidth(shape.cardinalities[i]);
    // A category that no training row has is embedded as zeros rather than as noise.
    const Initial initial{Initial::Kind::kNormal, 1.0, kUnseenInputCode};
    embeddings_.push_back(parameters.Declare(absl::StrCat("embeddings.", i, ".weight"),
                                             {shape.cardinalities[i], embedding}, initial));
    width_ += embedding;
  }
}

at::Tensor InputColumns::Concatenate(const std::vector<at::Tensor>& weights,
                                     const Inputs& inputs) const {
  if (embeddings_.empty()) return inputs.numeric;
  std::vector<at::Tensor> parts;
  parts.reserve(embeddings_.size() + 1);
  if (numeric_ > 0) parts.push_back(inputs.numeric);
  const at::Tensor columns = inputs.codes.movedim(-1, 0).contiguous();  // [columns, B...]
  for (size_t i = 0; i < embeddings_.size(); ++i) {
    parts.push_back(
        at::embedding(weights[embeddings_[i]], columns.select(0, static_cast<int64_t>(i))));
  }
  return at::cat(parts, -1);
}

at::Tensor InputColumns::Sequence(const std::vector<at::Tensor>& weights,
                                  const Inputs& inputs) const {
  const at::Tensor columns = Concatenate(weights, inputs);
  return window_ == 1 ? columns.unsqueeze(1) : columns;
}

int64_t EmbeddingWidth(int64_t cardinality) {
  return std::clamp<int64_t>((cardinality + 1) / 2, 1, 50);
}

LinearParameters DeclareLinear(const std::string& name, int64_t in, int64_t out,
                               Parameters& parameters) {
  const Initial initial{Initial::Kind::kUniform,
                        1.0 / std::sqrt(static_cast<double>(std::max<int64_t>(1, in))), -1};
  LinearParameters linear;
  linear.weight = parameters.Declare(name + ".weight", {out, in}, initial);
  linear.bias = parameters.Declare(name + ".bias", {out}, initial);
  return linear;
}

}  // namespace traind
