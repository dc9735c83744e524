// The names and shapes of a model's parameters, without their values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace traind {

struct ParameterInfo {
  std::string name;
  std::vector<int64_t> shape;
  int64_t size = 0;  // elements
  // The layer that it is part of, counted from the inputs; kHeadDepth: the head. Networks that are
  // not made for fine-tuning are all head.
  int64_t depth = -1;
  // Whether weight decay makes sense: false for norms, biases, and vectors that stand for a place.
  bool decays = true;
};
inline constexpr int64_t kHeadDepth = -1;
using ParameterLayout = std::vector<ParameterInfo>;

inline int64_t TotalSize(const ParameterLayout& layout) {
  int64_t total = 0;
  for (const ParameterInfo& parameter : layout) total += parameter.size;
  return total;
}

}  // namespace traind
