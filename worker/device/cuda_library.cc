// libtraind_cuda.so: the only code that names CUDA and NCCL classes.
#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>

#include <torch/csrc/cuda/nccl.h>
#include <cstdlib>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "worker/device/cuda_api.h"
#include "worker/device/gather.h"

namespace traind {
namespace {

struct OneGraph final : public at::cuda::CUDAGraph {
  // Ends a recording that failed. Its error is ignored, because the failure is already known. Where
  // a capture is invalid, capture_end() throws before it has undone what capture_begin() did, and
  // later steps would fail: memory would go to the recording's pool, and random numbers count as
  // recorded. So that is undone here.
  void Abandon() {
    try {
      capture_end();
    } catch (const c10::Error&) {
      cudaGetLastError();  // resets it
      if (capture_ended_) return;
      c10::cuda::CUDACachingAllocator::endAllocateToPool(capture_dev_, mempool_id_);
      c10::cuda::CUDACachingAllocator::releasePool(capture_dev_, mempool_id_);
      for (const auto& [state, increment] : captured_generator_states_) state->capturing_ = false;
    }
  }
};

class CudaGraph final : public DeviceGraph {
 public:
  // Recording needs a stream other than the default one, always the same: it gets memory of its own
  // for products, and the pool hands out streams in turn, so that a later one were that of
  // CopyAhead. Memory that is only kept is given back first, because a recording cannot ask for it.
  explicit CudaGraph(const std::function<void()>& body) {
    static const c10::cuda::CUDAStream recording = c10::cuda::getStreamFromPool();
    c10::cuda::device_synchronize();
    c10::cuda::CUDACachingAllocator::emptyCache();
    const c10::cuda::CUDAStreamGuard stream(recording);
    // Loader threads lock memory meanwhile, which would end a capture in the strict mode.
    graph_.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    try {
      body();
    } catch (...) {
      graph_.Abandon();
      throw;
    }
    graph_.capture_end();
  }

  void Launch() override { graph_.replay(); }

 private:
  OneGraph graph_;
};

class CudaLibrary final : public CudaApi {
 public:
  int DeviceCount() const override {
    const int devices = at::cuda::device_count();
    // Memory is counted from here on, also before the first tensor.
    if (devices > 0) at::globalContext().lazyInitDevice(at::kCUDA);
    return devices;
  }

  std::string DeviceName() const override { return at::cuda::getDeviceProperties(0)->name; }

  std::string Versions() const override {
    constexpr int kCuda = CUDART_VERSION;  // 13000 is 13.0
    const uint64_t nccl = torch::cuda::nccl::version();
    return "cuda=" + std::to_string(kCuda / 1000) + "." + std::to_string(kCuda % 1000 / 10) +
           " nccl=" + std::to_string(nccl >> 32) + "." + std::to_string(nccl >> 16 & 0xffff) + "." +
           std::to_string(nccl & 0xffff);
  }

  int ComputeCapability() const override {
    const cudaDeviceProp* properties = at::cuda::getDeviceProperties(0);
    return properties->major * 10 + properties->minor;
  }

  void Synchronize() const override { c10::cuda::device_synchronize(); }

  void EmptyCache() const override { c10::cuda::CUDACachingAllocator::emptyCache(); }

  int64_t FreeMemory() const override {
    size_t free = 0, all = 0;
    C10_CUDA_CHECK(cudaMemGetInfo(&free, &all));
    return static_cast<int64_t>(free);
  }

  int64_t PeakMemory() const override {
    constexpr auto kAll = static_cast<size_t>(c10::CachingDeviceAllocator::StatType::AGGREGATE);
    return c10::cuda::CUDACachingAllocator::getDeviceStats(0).allocated_bytes[kAll].peak;
  }

  void ResetPeakMemory() const override { c10::cuda::CUDACachingAllocator::resetPeakStats(0); }

  at::Tensor CopyAhead(const at::Tensor& locked) const override {
    static const c10::cuda::CUDAStream aside = c10::cuda::getStreamFromPool();
    const c10::cuda::CUDAStream now = c10::cuda::getCurrentCUDAStream();
    at::Tensor copy;
    {
      const c10::cuda::CUDAStreamGuard guard(aside);
      copy = locked.to(at::kCUDA, /*non_blocking=*/true);
    }
    at::cuda::CUDAEvent made;
    made.record(aside);
    made.block(now);
    c10::cuda::CUDACachingAllocator::recordStream(copy.storage().data_ptr(), now);
    return copy;
  }

  std::unique_ptr<DeviceGraph> Record(const std::function<void()>& body) const override {
    return std::make_unique<CudaGraph>(body);
  }

  void AddNccl(c10d::ProcessGroup& group, c10d::Store& store, int rank, int world_size,
               std::chrono::milliseconds timeout) const override {
    // The host waits for each exchange, for as long as `timeout`: a peer that died or is late
    // becomes an exception here. Else only the stream would wait, and NCCL's watchdog would end the
    // process.
    setenv("TORCH_NCCL_BLOCKING_WAIT", "1", /*overwrite=*/0);
    auto options = c10d::ProcessGroupNCCL::Options::create();
    options->timeout = timeout;
    const auto nccl = c10::make_intrusive<c10d::ProcessGroupNCCL>(
        c10::intrusive_ptr<c10d::Store>::unsafe_reclaim_from_nonowning(&store), rank, world_size,
        options);
    group.setBackend(c10::DeviceType::CUDA, c10d::ProcessGroup::BackendType::NCCL, nccl);
    group.setDefaultBackend(c10d::ProcessGroup::BackendType::NCCL);
  }

  void GatherBatch(const at::Tensor& numeric, const at::Tensor& codes, const at::Tensor& target,
                   const at::Tensor& index, at::Tensor& out_numeric, at::Tensor& out_codes,
                   at::Tensor& out_target) const override {
    GatherArgs args{};
    args.numeric = numeric.const_data_ptr<float>();
    args.codes = codes.const_data_ptr<int32_t>();
    args.target = target.const_data_ptr();
    args.index = index.const_data_ptr<int32_t>();
    args.out_numeric = out_numeric.mutable_data_ptr<float>();
    args.out_codes = out_codes.mutable_data_ptr<int32_t>();
    args.out_target = out_target.mutable_data_ptr();
    args.rows = index.size(0);
    args.numeric_width = static_cast<int>(numeric.size(1));
    args.code_width = static_cast<int>(codes.size(1));
    args.target_bytes = static_cast<int>(target.element_size());
    const int error = GatherOnDevice(args, c10::cuda::getCurrentCUDAStream().stream());
    C10_CUDA_CHECK(static_cast<cudaError_t>(error));
  }
};

}  // namespace
}  // namespace traind

extern "C" __attribute__((visibility("default"))) const traind::CudaApi* traind_cuda_api() {
  static const traind::CudaLibrary library;
  return &library;
}
