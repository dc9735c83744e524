// A gang of Ranks that train one model together.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "worker/device/transport.h"

namespace at {
class Tensor;
}

namespace traind {

class CudaApi;

struct GroupOptions {
  std::string host = "127.0.0.1";  // rank 0 listens there, and on no other address
  int port = 0;
  int rank = 0;
  int world_size = 2;
  absl::Duration timeout = absl::Seconds(30);  // of joining, and of each collective
  const CudaApi* cuda = nullptr;               // null: CPU only
  Transport transport = Transport::kAuto;
};

// Threads: confined to one; every rank makes the same calls in the same order.
// Errors: Unavailable (Fault::kCollective) where a peer is gone or late; after that the
// group is of no more use.
class Group {
 public:
  // Waits for all ranks.
  static absl::StatusOr<std::unique_ptr<Group>> Join(const GroupOptions& options);
  ~Group();

  int rank() const;
  int world_size() const;

  // In use; never kAuto.
  Transport transport() const;

  // values[i] becomes its sum over all ranks; the same bits on each.
  absl::Status Sum(absl::Span<float> values);
  // A contiguous float32 tensor, on any device, becomes its mean. Errors: torch's
  // exceptions.
  void Average(at::Tensor& values);
  // values become rank 0's.
  absl::Status Broadcast(absl::Span<float> values);
  absl::Status Broadcast(absl::Span<int64_t> values);
  absl::Status Barrier();

  // Time spent in the calls above since the last call of this; not in what overlaps with
  // a backward pass.
  absl::Duration TakeTime();

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  explicit Group(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Averages gradients over the ranks. Over Gloo and NCCL that can happen while the
// backward pass still runs (c10d's Reducer; gradients are then views of its buckets:
// reset them after the step, never zero them). Through shared memory it happens after:
// there it takes a few percent of a small model's step, and adds in the same order in
// every run. While gradients are only added up, nothing of this is called.
// Threads: confined to one. Errors: torch's exceptions.
class GradientReducer {
 public:
  GradientReducer(Group& group, const std::vector<at::Tensor>& parameters);
  ~GradientReducer();

  // Around an autograd pass that ends an optimizer step; not for a backward pass of
  // another kind.
  void BeforeForward();
  void BeforeBackward();
  // gradient: all of this rank's, [n] float32, contiguous. Becomes the mean over the
  // ranks, unless the backward pass has seen to that.
  void Average(at::Tensor& gradient);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace traind
