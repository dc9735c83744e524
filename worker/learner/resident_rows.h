// A fold's rows on the device, and the batches gathered from them.
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

// The sample of row r has the inputs of rows r - horizon - window + 1 .. r - horizon
// and the target of row r.
// Threads: confined to one. Errors: torch's exceptions.
class ResidentRows {
 public:
  // cuda: null on the CPU. target: [rows] or [rows, outputs] on the device, in the form that
  // ObjectiveLoss::Loss takes.
  ResidentRows(const ModelShape& shape, int64_t horizon, const CudaApi* cuda, EncodedRows rows,
               at::Tensor target);

  // From now on samples have the last `steps` time steps of the shape's window.
  void SetWindow(int64_t steps);

  int64_t rows() const { return numeric_.size(0); }
  // Number of rows before the first row that can have a sample.
  int64_t context() const { return context_; }
  // OutOfRange if an index is not that of a sample.
  absl::Status Check(absl::Span<const int32_t> index) const;

  struct Batch {
    Inputs inputs;
    at::Tensor target;
  };
  // index: [B] int32 on the device. The batch is in buffers that the next batch overwrites.
  Batch Gather(const at::Tensor& index);
  // Gathers into new tensors.
  Inputs GatherInputs(const at::Tensor& index) const;

  const at::Tensor& numeric() const { return numeric_; }  // [N, F] float32
  const at::Tensor& codes() const { return codes_; }      // [N, K] int32
  const at::Tensor& target() const { return target_; }

 private:
  void Reserve(int64_t batch_rows);

  ModelShape shape_;
  const int64_t horizon_, context_;
  int64_t first_;  // first step of a sample, relative to its row
  const CudaApi* const cuda_;
  at::Tensor numeric_, codes_, target_;
  at::Tensor batch_numeric_, batch_codes_, batch_target_;  // as large as the largest batch
};

}  // namespace traind
