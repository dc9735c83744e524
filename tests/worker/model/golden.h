// Reads the files that PyTorch's scripts in tests/golden have recorded.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "worker/checkpoint/safetensors.h"
#include "worker/learner/learner.h"

namespace traind {

class Golden {
 public:
  explicit Golden(const std::string& name) {
    auto bytes = ReadFile("tests/golden/" + name);
    EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
    bytes_ = *std::move(bytes);
    auto file = ParseSafetensors(bytes_);
    EXPECT_TRUE(file.ok()) << file.status().ToString();
    file_ = *std::move(file);
  }

  std::vector<float> Floats(const std::string& name) const {
    const auto size = static_cast<int64_t>(file_.tensors.at(name).data.size()) / 4;
    auto values = FloatsOf(file_, name, size);
    EXPECT_TRUE(values.ok()) << values.status().ToString();
    return *std::move(values);
  }

  std::vector<int32_t> Integers(const std::string& name) const {
    std::vector<int32_t> values;
    const absl::string_view data = file_.tensors.at(name).data;
    for (size_t i = 0; i < data.size(); i += 8) {
      int64_t value = 0;
      std::memcpy(&value, data.data() + i, 8);
      values.push_back(static_cast<int32_t>(value));
    }
    return values;
  }

 private:
  std::string bytes_;
  SafetensorsFile file_;
};

inline std::vector<int32_t> RowsFrom(int32_t first, int64_t count) {
  std::vector<int32_t> rows(static_cast<size_t>(count));
  std::iota(rows.begin(), rows.end(), first);
  return rows;
}

// Loads the weights with the golden file's names, after a prefix.
inline void LoadWeights(const Golden& golden, Learner& learner, const std::string& prefix = "") {
  auto state = learner.Save();
  ASSERT_TRUE(state.ok()) << state.status().ToString();
  std::vector<float> weights;
  for (const ParameterInfo& parameter : learner.layout()) {
    const std::vector<float> values = golden.Floats(prefix + parameter.name);
    ASSERT_EQ(static_cast<int64_t>(values.size()), parameter.size) << parameter.name;
    weights.insert(weights.end(), values.begin(), values.end());
  }
  state->slots[kWeightsSlot] = weights;
  state->slots[kBestWeightsSlot] = weights;
  const absl::Status loaded = learner.Load(*state);
  ASSERT_TRUE(loaded.ok()) << loaded.ToString();
}

}  // namespace traind
