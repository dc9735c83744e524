#pragma once

#include <cstddef>
#include <cstdint>

namespace traind {

// Pointers into device memory; layouts are those of CudaApi::GatherBatch. Targets have
// `target_bytes` (4 or 8) each.
struct GatherArgs {
  const float* numeric;
  const int32_t* codes;
  const void* target;
  const int32_t* index;
  float* out_numeric;
  int32_t* out_codes;
  void* out_target;
  int64_t rows;
  int numeric_width;
  int code_width;
  int target_bytes;
};

// Runs on `stream` (a cudaStream_t) and does not wait. Returns a cudaError_t.
int GatherOnDevice(const GatherArgs& args, void* stream);

}  // namespace traind
