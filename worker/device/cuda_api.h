// What the CUDA part of the engine offers. It lives in libtraind_cuda.so, which a
// Rank opens where a GPU is wanted and the driver is there: trainrank itself
// links neither CUDA nor NCCL.
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace at {
class Tensor;
}
namespace c10d {
class ProcessGroup;
class Store;
}  // namespace c10d

namespace traind {

// Work that was recorded on the device, to be launched at once. Tensors that it took or
// made stay where they are, and must live as long.
// Threads: confined to one. Errors: torch's exceptions.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  // On the current stream. What it draws from the device's generator follows from where
  // that stands now.
  virtual void Launch() = 0;
};

// Threads: as torch's. Errors: torch's exceptions. All calls are about device 0,
// the one that CUDA_VISIBLE_DEVICES leaves.
class CudaApi {
 public:
  virtual ~CudaApi() = default;
  virtual int DeviceCount() const = 0;
  virtual std::string DeviceName() const = 0;
  virtual int ComputeCapability() const = 0;  // 75, 80, 90
  virtual void Synchronize() const = 0;
  // Gives memory that is kept for reuse back to the device.
  virtual void EmptyCache() const = 0;
  // The most that tensors took at once, since the last reset; bytes.
  virtual int64_t PeakMemory() const = 0;
  virtual void ResetPeakMemory() const = 0;

  // Records what body asks of the device, which is not done now. body: shapes and
  // addresses are the same each time, and nothing waits for the device. Waits for it.
  virtual std::unique_ptr<DeviceGraph> Record(const std::function<void()>& body) const = 0;

  // Makes NCCL the group's backend for device tensors. `store` is a
  // c10::intrusive_ptr<c10d::Store>'s target, which the group keeps alive.
  virtual void AddNccl(c10d::ProcessGroup& group, c10d::Store& store, int rank, int world_size,
                       std::chrono::milliseconds timeout) const = 0;

  // One launch for a batch's three gathers: row i of each `out` is row index[i] of
  // its source. numeric [N, F] float32, codes [N, K] int32, target [N] float32 or
  // int64, index [B] int32; all contiguous and on the device. F or K may be 0.
  virtual void GatherBatch(const at::Tensor& numeric, const at::Tensor& codes,
                           const at::Tensor& target, const at::Tensor& index,
                           at::Tensor& out_numeric, at::Tensor& out_codes,
                           at::Tensor& out_target) const = 0;
};

// The library, opened at the first call, next to this program (or in device/ there).
// Errors: Unavailable: no CUDA driver, or no device; NotFound: no library;
// Internal: it does not load.
absl::StatusOr<const CudaApi*> LoadCuda();

inline constexpr char kCudaEntryPoint[] = "traind_cuda_api";

}  // namespace traind
