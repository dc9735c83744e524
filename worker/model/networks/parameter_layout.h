// The names and shapes of a model's parameters, without their values.
#pragma once

#include <absl/strings/match.h>
#include <absl/strings/string_view.h>

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

// What the names of the matrices of a low-rank change (model.lora) end with.
inline constexpr char kLoraA[] = ".lora_A.weight", kLoraB[] = ".lora_B.weight";
inline bool IsOfLora(absl::string_view parameter) {
  return absl::EndsWith(parameter, kLoraA) || absl::EndsWith(parameter, kLoraB);
}

using ParameterLayout = std::vector<ParameterInfo>;

inline int64_t TotalSize(const ParameterLayout& layout) {
  int64_t total = 0;
  for (const ParameterInfo& parameter : layout) total += parameter.size;
  return total;
}

}  // namespace traind
