#include "worker/device/gather.h"

#include <cuda_runtime.h>

namespace traind {
namespace {

// One warp per row: its lanes walk over the row's columns, so that reads of a row coalesce for
// any width.
constexpr int kWarp = 32;
constexpr int kWarpsPerBlock = 8;

__global__ void Gather(GatherArgs a) {
  const int lane = threadIdx.x % kWarp;
  const int64_t warps = static_cast<int64_t>(gridDim.x) * kWarpsPerBlock;
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * kWarpsPerBlock + threadIdx.x / kWarp;
       row < a.rows; row += warps) {
    const int64_t source = a.index[row];
    for (int i = lane; i < a.numeric_width; i += kWarp) {
      a.out_numeric[row * a.numeric_width + i] = a.numeric[source * a.numeric_width + i];
    }
    for (int i = lane; i < a.code_width; i += kWarp) {
      a.out_codes[row * a.code_width + i] = a.codes[source * a.code_width + i];
    }
    if (lane != 0) continue;
    if (a.target_bytes == 8) {
      static_cast<int64_t*>(a.out_target)[row] = static_cast<const int64_t*>(a.target)[source];
    } else {
      static_cast<float*>(a.out_target)[row] = static_cast<const float*>(a.target)[source];
    }
  }
}

}  // namespace

int GatherOnDevice(const GatherArgs& args, void* stream) {
  if (args.rows == 0) return cudaSuccess;
  constexpr int64_t kMostBlocks = 65535;
  const int64_t blocks = (args.rows + kWarpsPerBlock - 1) / kWarpsPerBlock;
  Gather<<<static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks),
           kWarp * kWarpsPerBlock, 0, static_cast<cudaStream_t>(stream)>>>(args);
  return cudaGetLastError();
}

}  // namespace traind
