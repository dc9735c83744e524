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
};
using ParameterLayout = std::vector<ParameterInfo>;

inline int64_t TotalSize(const ParameterLayout& layout) {
  int64_t total = 0;
  for (const ParameterInfo& parameter : layout) total += parameter.size;
  return total;
}

}  // namespace traind
