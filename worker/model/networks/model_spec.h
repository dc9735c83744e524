// Which network a model is, and what goes into it and comes out of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/plain/message_info.h"
#include "proto/plain/job.h"

namespace traind {

// One of its members is set: the network, with its own settings (proto/job.proto).
using plain::ModelSpec;

// The network's kind: its name in the spec (`name`), the data that it needs (`needs`) and whether
// it takes a window step by step (`sequence`). Null where the spec has no network.
inline const plain::FieldInfo* NetworkOf(const ModelSpec& spec) {
  return plain::ChosenField(ModelSpec::Info(), &spec, "architecture");
}
// Such as "mlp"; empty where the spec has no network.
inline std::string NetworkName(const ModelSpec& spec) {
  const plain::FieldInfo* const network = NetworkOf(spec);
  return network == nullptr ? "" : network->name;
}

// Whether an MLP has neither several members nor an embedding of numbers.
inline bool IsPlain(const plain::MlpSpec& mlp) {
  return mlp.ensemble_members == 1 && !mlp.numeric_embedding.has_value();
}

// The shapes of inputs and outputs. Each time step has the numeric and the categorical inputs.
struct ModelShape {
  int64_t numeric = 0;                 // columns of the numeric input
  std::vector<int64_t> cardinalities;  // of each categorical input
  int64_t outputs = 1;                 // classes, or numbers to predict
  int64_t window = 1;                  // time steps of a sample; 1: a plain row
  std::vector<int64_t> image;          // [C, H, W] or [C, D, H, W] of its media; empty: none
  int64_t vocabulary = 0;              // of its tokens, which are below it; 0: no text
  int64_t max_tokens = 0;              // of a sample
};
inline bool HasTexts(const ModelShape& shape) { return shape.vocabulary > 0; }
inline bool HasMedia(const ModelShape& shape) { return !shape.image.empty() || HasTexts(shape); }

}  // namespace traind
