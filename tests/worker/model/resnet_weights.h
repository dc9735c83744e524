// Weights that follow from the names of parameters, as tests/golden/resnet_golden.py makes them.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "worker/model/networks/parameter_layout.h"

namespace traind {

// Numbers of [-1, 1).
inline std::vector<double> Drawn(const std::string& name, int64_t count) {
  const auto seed = static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(name.data()), static_cast<uInt>(name.size())));
  std::vector<double> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    uint32_t x = static_cast<uint32_t>(i) * 0x9E3779B9u + seed;
    x ^= x >> 16;
    x *= 0x85EBCA6Bu;
    x ^= x >> 13;
    x *= 0xC2B2AE35u;
    x ^= x >> 16;
    values[i] = static_cast<double>(x >> 8) / (1 << 23) - 1;
  }
  return values;
}

inline std::vector<float> ResnetValues(const ParameterInfo& parameter) {
  const std::string kind = parameter.name.substr(parameter.name.rfind('.') + 1);
  double mean = 0, scale = 0.1;  // of biases and running means
  if (kind == "running_var") {
    mean = 1, scale = 0.5;
  } else if (kind == "running_mean" || kind == "bias") {
    // as above
  } else if (parameter.shape.size() == 1) {  // a norm's weight
    mean = 0.4, scale = 0.2;
  } else {
    scale = std::sqrt(3.0 / static_cast<double>(parameter.size / parameter.shape[0]));
  }
  std::vector<float> values;
  for (const double u : Drawn(parameter.name, parameter.size)) {
    values.push_back(static_cast<float>(mean + scale * u));
  }
  return values;
}

// Of all parameters, one after the other.
inline std::vector<float> ResnetWeights(const ParameterLayout& layout) {
  std::vector<float> all;
  for (const ParameterInfo& parameter : layout) {
    const std::vector<float> values = ResnetValues(parameter);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

// The shape, the length, a projection, and the first values of a tensor.
inline std::vector<double> DigestOf(const ParameterInfo& parameter, const float* values) {
  std::vector<double> digest(parameter.shape.begin(), parameter.shape.end());
  digest.resize(4);
  const std::vector<double> onto = Drawn("digest " + parameter.name, parameter.size);
  double squares = 0, projection = 0;
  for (size_t i = 0; i < onto.size(); ++i) {
    squares += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    projection += values[i] * onto[i];
  }
  digest.insert(digest.end(), {std::sqrt(squares), projection});
  digest.insert(digest.end(), values, values + std::min<int64_t>(4, parameter.size));
  return digest;
}

}  // namespace traind
