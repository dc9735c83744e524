#include "worker/learner/resident_rows.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>
#include <absl/strings/str_cat.h>

#include <cstring>
#include <memory>
#include <utility>

#include "worker/device/cuda_api.h"
#include "worker/device/upload.h"

namespace traind {
namespace {

// out[i] receives `window` rows of source from row index[i] + first on. CPU only.
void CopyRows(const at::Tensor& source, const at::Tensor& index, int64_t first, int64_t window,
              const at::Tensor& out) {
  const int64_t row_bytes = source.numel() / source.size(0) * source.element_size();
  if (row_bytes == 0) return;
  const int32_t* rows = index.const_data_ptr<int32_t>();
  const char* from = static_cast<const char*>(source.const_data_ptr());
  char* to = static_cast<char*>(out.mutable_data_ptr());
  const int64_t count = index.size(0), bytes = window * row_bytes;
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * bytes, from + (rows[i] + first) * row_bytes, static_cast<size_t>(bytes));
  }
}

std::vector<int64_t> BatchShape(int64_t rows, int64_t window, int64_t width) {
  if (window == 1) return {rows, width};
  return {rows, window, width};
}

}  // namespace

template <class T>
at::Tensor ToDevice(std::vector<T> values, at::IntArrayRef shape, c10::Device device) {
  auto owner = std::make_unique<std::vector<T>>(std::move(values));
  T* data = owner->data();
  const at::Tensor host = at::from_blob(
      data, shape, [held = owner.release()](void*) { delete held; },
      at::TensorOptions().dtype(c10::CppTypeToScalarType<T>::value));
  return device.is_cuda() ? host.to(device) : host;
}
template at::Tensor ToDevice(std::vector<float>, at::IntArrayRef, c10::Device);
template at::Tensor ToDevice(std::vector<int32_t>, at::IntArrayRef, c10::Device);

ResidentRows::ResidentRows(const ModelShape& shape, int64_t horizon, const CudaApi* cuda,
                           bool on_host, EncodedRows rows, at::Tensor target)
    : shape_(shape),
      horizon_(horizon),
      context_(shape.window - 1 + horizon),
      first_(-context_),
      cuda_(cuda),
      device_(cuda == nullptr ? c10::Device(c10::kCPU) : c10::Device(c10::kCUDA, 0)),
      on_host_(on_host),
      target_(std::move(target)) {
  const c10::Device place = on_host ? c10::Device(c10::kCPU) : device_;
  numeric_ = ToDevice(std::move(rows.numeric), {rows.rows, shape.numeric}, place);
  const int64_t columns = static_cast<int64_t>(shape.cardinalities.size());
  codes_ = ToDevice(std::move(rows.codes), {rows.rows, columns}, place);
}

absl::Status ResidentRows::Check(absl::Span<const int32_t> index) const {
  const int64_t end = rows();
  for (const int32_t row : index) {
    if (row < context_ || row >= end) {
      return absl::OutOfRangeError(absl::StrCat(
          "row ", row, " of ", end, " has no sample: it needs ", context_, " rows before it"));
    }
  }
  return absl::OkStatus();
}

void ResidentRows::SetWindow(int64_t steps) {
  shape_.window = steps;
  first_ = -(steps - 1 + horizon_);
  batch_numeric_.reset();  // the buffers have another shape
}

void ResidentRows::Reserve(int64_t batch_rows) {
  if (batch_numeric_.defined() && batch_numeric_.size(0) >= batch_rows) return;
  batch_numeric_ =
      at::empty(BatchShape(batch_rows, shape_.window, numeric_.size(1)), numeric_.options());
  batch_codes_ = at::empty(BatchShape(batch_rows, shape_.window, codes_.size(1)), codes_.options());
  std::vector<int64_t> target_shape = target_.sizes().vec();
  target_shape[0] = batch_rows;
  batch_target_ = at::empty(target_shape, target_.options());
}

// Page-locked memory is not used again before the device has made the copy (ATen's
// CachingHostAllocator), so the next batch may be gathered meanwhile.
at::Tensor ResidentRows::Copied(const at::Tensor& source, const at::Tensor& index, int64_t first,
                                int64_t window) const {
  std::vector<int64_t> shape = source.sizes().vec();
  shape[0] = index.size(0);
  if (window > 1) shape.insert(shape.begin() + 1, window);
  const at::Tensor gathered = at::empty(shape, source.options().pinned_memory(device_.is_cuda()));
  CopyRows(source, index, first, window, gathered);
  return Upload(gathered, device_);
}

ResidentRows::Batch ResidentRows::Gather(const at::Tensor& index) {
  const int64_t count = index.size(0);
  Batch batch;
  if (on_host_) {
    batch.inputs = GatherInputs(index);
    batch.target = Copied(target_, index, 0, 1);
    return batch;
  }
  Reserve(count);
  batch.inputs.numeric = batch_numeric_.narrow(0, 0, count);
  batch.inputs.codes = batch_codes_.narrow(0, 0, count);
  batch.target = batch_target_.narrow(0, 0, count);
  if (cuda_ == nullptr) {
    CopyRows(numeric_, index, first_, shape_.window, batch.inputs.numeric);
    CopyRows(codes_, index, first_, shape_.window, batch.inputs.codes);
    CopyRows(target_, index, 0, 1, batch.target);
  } else if (context_ == 0 && target_.numel() == target_.size(0)) {
    cuda_->GatherBatch(numeric_, codes_, target_, index, batch.inputs.numeric, batch.inputs.codes,
                       batch.target);
  } else {
    batch.inputs = GatherInputs(index);
    at::index_select_out(batch.target, target_, 0, index);
  }
  return batch;
}

Inputs ResidentRows::GatherInputs(const at::Tensor& index) const {
  const int64_t count = index.size(0), window = shape_.window;
  Inputs inputs;
  if (place().is_cpu()) {
    inputs.numeric = Copied(numeric_, index, first_, window);
    inputs.codes = Copied(codes_, index, first_, window);
    return inputs;
  }
  at::Tensor steps = index.add(first_);
  if (window > 1) steps = steps.unsqueeze(1).add(at::arange(window, index.options())).flatten();
  inputs.numeric =
      at::index_select(numeric_, 0, steps).view(BatchShape(count, window, numeric_.size(1)));
  inputs.codes = at::index_select(codes_, 0, steps).view(BatchShape(count, window, codes_.size(1)));
  return inputs;
}

}  // namespace traind
