// What a Job asks of the Workers and GPUs that train it, besides a number of slots (ResourceSpec).
// Threads: safe, pure.
#pragma once

#include <absl/strings/string_view.h>

#include <cstdint>
#include <set>
#include <string>
#include <tuple>

namespace traind {

struct Constraints {
  std::set<std::string> labels = {};  // "rack=a": a Worker that suits has all of them
  std::string gpu = {};               // words of the GPU's name, in lower case; empty: any
  int64_t gpu_memory_bytes = 0;       // nominal, as the GPU is sold with; 0: any

  // Whether anything is asked.
  bool any() const { return of_gpu() || !labels.empty(); }
  bool of_gpu() const { return !gpu.empty() || gpu_memory_bytes > 0; }
  friend bool operator<(const Constraints& a, const Constraints& b) {
    return std::tie(a.gpu, a.gpu_memory_bytes, a.labels) <
           std::tie(b.gpu, b.gpu_memory_bytes, b.labels);
  }
  friend bool operator==(const Constraints& a, const Constraints& b) {
    return std::tie(a.gpu, a.gpu_memory_bytes, a.labels) ==
           std::tie(b.gpu, b.gpu_memory_bytes, b.labels);
  }
};

// Whether the words stand in a GPU's name: "a100" does in "nvidia a100-sxm4-80gb", "a10" does not.
// Both in lower case.
bool NamesGpu(absl::string_view name, absl::string_view words);
// Whether a GPU that tells so much memory counts as one of that nominal size.
bool HoldsNominally(int64_t told_bytes, int64_t nominal_bytes);

}  // namespace traind
