// A fold's rows on the device or in the host's memory, and the batches gathered from them.
#pragma once

#include <ATen/core/Tensor.h>
#include <absl/status/status.h>
#include <absl/types/span.h>

#include <cstdint>
#include <vector>

#include "worker/data/row_encoder.h"
#include "worker/model/networks/model.h"
#include "worker/model/networks/model_spec.h"

namespace traind {

class CudaApi;

// A tensor with these values on the device. On the CPU it takes them over without a copy.
template <class T>
at::Tensor ToDevice(std::vector<T> values, at::IntArrayRef shape, c10::Device device);
extern template at::Tensor ToDevice(std::vector<float>, at::IntArrayRef, c10::Device);
extern template at::Tensor ToDevice(std::vector<int32_t>, at::IntArrayRef, c10::Device);

// Whether rows of so many bytes stay in the host's memory, beside a GPU with so many free bytes:
// the other half is for the network and its activations.
inline bool StayOnHost(int64_t bytes, int64_t free_bytes) { return bytes > free_bytes / 2; }

// The sample of row r has the inputs of rows r - horizon - window + 1 .. r - horizon
// and the target of row r.
// Threads: confined to one. Errors: torch's exceptions.
class ResidentRows {
 public:
  // cuda: null on the CPU. on_host: the rows stay in the host's memory; batches are gathered there
  // and copied to the device. target: [rows] or [rows, outputs] where the rows are, in the form
  // that ObjectiveLoss::Loss takes.
  ResidentRows(const ModelShape& shape, int64_t horizon, const CudaApi* cuda, bool on_host,
               EncodedRows rows, at::Tensor target);

  // From now on samples have the last `steps` time steps of the shape's window.
  void SetWindow(int64_t steps);

  int64_t rows() const { return numeric_.size(0); }
  bool on_host() const { return on_host_; }
  // Where the rows are, and indices have to be.
  c10::Device place() const { return numeric_.device(); }
  // Number of rows before the first row that can have a sample.
  int64_t context() const { return context_; }
  // OutOfRange if an index is not that of a sample.
  absl::Status Check(absl::Span<const int32_t> index) const;

  struct Batch {
    Inputs inputs;
    at::Tensor target;
  };
  // index: [B] int32 in place(). The batch is on the device, in buffers that the next batch may
  // overwrite.
  Batch Gather(const at::Tensor& index);
  // Gathers into new tensors on the device.
  Inputs GatherInputs(const at::Tensor& index) const;

  const at::Tensor& numeric() const { return numeric_; }  // [N, F] float32
  const at::Tensor& codes() const { return codes_; }      // [N, K] int32
  const at::Tensor& target() const { return target_; }

 private:
  // Rows of a source in the host's memory, `window` ones of each index, as a tensor on the device.
  at::Tensor Copied(const at::Tensor& source, const at::Tensor& index, int64_t first,
                    int64_t window) const;
  void Reserve(int64_t batch_rows);

  ModelShape shape_;
  const int64_t horizon_, context_;
  int64_t first_;  // first step of a sample, relative to its row
  const CudaApi* const cuda_;
  const c10::Device device_;
  const bool on_host_;
  at::Tensor numeric_, codes_, target_;
  at::Tensor batch_numeric_, batch_codes_, batch_target_;  // as large as the largest batch
};

}  // namespace traind
