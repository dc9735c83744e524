// A fold's rows on the device, and batches out of them.
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

// A tensor with the values, which it takes over without a copy where it is the CPU's.
template <class T>
at::Tensor ToDevice(std::vector<T> values, at::IntArrayRef shape, c10::Device device);
extern template at::Tensor ToDevice(std::vector<float>, at::IntArrayRef, c10::Device);
extern template at::Tensor ToDevice(std::vector<int32_t>, at::IntArrayRef, c10::Device);

// The sample of row r has the inputs of rows r - horizon - window + 1 .. r - horizon
// and the target of row r.
// Threads: confined to one. Errors: torch's exceptions.
class ResidentRows {
 public:
  // cuda: null on the CPU. target: as ObjectiveLoss::Loss wants it, [rows] or
  // [rows, outputs], on the device.
  ResidentRows(const ModelShape& shape, int64_t horizon, const CudaApi* cuda, EncodedRows rows,
               at::Tensor target);

  // Samples have the last `steps` of their shape's time steps from now on.
  void SetWindow(int64_t steps);

  int64_t rows() const { return numeric_.size(0); }
  // Rows before the first that a sample can be of.
  int64_t context() const { return context_; }
  // OutOfRange where an index is no sample's.
  absl::Status Check(absl::Span<const int32_t> index) const;

  struct Batch {
    Inputs inputs;
    at::Tensor target;
  };
  // index: [B] int32 on the device. The batch stands in buffers that the next one
  // overwrites.
  Batch Gather(const at::Tensor& index);
  // In tensors of their own.
  Inputs GatherInputs(const at::Tensor& index) const;

  const at::Tensor& numeric() const { return numeric_; }  // [N, F] float32
  const at::Tensor& codes() const { return codes_; }      // [N, K] int32
  const at::Tensor& target() const { return target_; }

 private:
  void Reserve(int64_t batch_rows);

  ModelShape shape_;
  const int64_t horizon_, context_;
  int64_t first_;  // of a sample's steps, from its row on
  const CudaApi* const cuda_;
  at::Tensor numeric_, codes_, target_;
  at::Tensor batch_numeric_, batch_codes_, batch_target_;  // as large as the largest batch
};

}  // namespace traind
