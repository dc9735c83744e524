// The interface of the engine's CUDA part. Its implementation is libtraind_cuda.so, which a
// Rank opens if a GPU is wanted and the driver is present: trainrank itself links
// neither CUDA nor NCCL.
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

// Recorded work of the device, to be launched as a whole. The tensors that it uses keep their
// addresses and must outlive it.
// Threads: confined to one. Errors: torch's exceptions.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  // Runs on the current stream. Random numbers follow from the current position of
  // the device's generator.
  virtual void Launch() = 0;
};

// Threads: as torch's. Errors: torch's exceptions. All calls concern device 0, the only one
// that CUDA_VISIBLE_DEVICES leaves visible.
class CudaApi {
 public:
  virtual ~CudaApi() = default;
  virtual int DeviceCount() const = 0;
  virtual std::string DeviceName() const = 0;
  virtual std::string Versions() const = 0;   // of its libraries, "cuda=13.0 nccl=2.28.9"
  virtual int ComputeCapability() const = 0;  // 75, 80, 90
  virtual void Synchronize() const = 0;
  // Returns cached memory to the device.
  virtual void EmptyCache() const = 0;
  // The device's memory that nobody uses, in bytes; what this process has cached is not free.
  virtual int64_t FreeMemory() const = 0;
  // The peak memory of tensors since the last reset, in bytes.
  virtual int64_t PeakMemory() const = 0;
  virtual void ResetPeakMemory() const = 0;

  // Returns a copy on the device of a tensor in page-locked memory, made by a stream of its own
  // while the device still computes what came before. What is given to the current stream from now
  // on waits for the copy; the host does not.
  virtual at::Tensor CopyAhead(const at::Tensor& locked) const = 0;

  // Records the device work of `body` without running it. body must use the same shapes and
  // addresses each time and must not wait for the device. Record() itself waits for it. Other
  // threads may use the device meanwhile.
  virtual std::unique_ptr<DeviceGraph> Record(const std::function<void()>& body) const = 0;

  // Makes NCCL the group's backend for device tensors. `store` is the target of a
  // c10::intrusive_ptr<c10d::Store>, which the group keeps alive.
  virtual void AddNccl(c10d::ProcessGroup& group, c10d::Store& store, int rank, int world_size,
                       std::chrono::milliseconds timeout) const = 0;

  // Gathers a batch in one launch: row i of each `out` is row index[i] of its source. numeric
  // [N, F] float32, codes [N, K] int32, target [N] float32 or int64, index [B] int32; all
  // contiguous and on the device. F or K may be 0.
  virtual void GatherBatch(const at::Tensor& numeric, const at::Tensor& codes,
                           const at::Tensor& target, const at::Tensor& index,
                           at::Tensor& out_numeric, at::Tensor& out_codes,
                           at::Tensor& out_target) const = 0;
};

// Opens the library at the first call. It is in the program's folder, or in device/ below it.
// Errors: Unavailable: no CUDA driver, or no device; NotFound: no library;
// Internal: it does not load.
absl::StatusOr<const CudaApi*> LoadCuda();

inline constexpr char kCudaEntryPoint[] = "traind_cuda_api";

}  // namespace traind
