// The collective operations of a gang: the Ranks that train one model together.
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
  std::string host = "127.0.0.1";  // rank 0 listens only on this address
  int port = 0;
  int rank = 0;
  int world_size = 2;
  absl::Duration timeout = absl::Seconds(30);  // for joining, and for each collective
  const CudaApi* cuda = nullptr;               // null: CPU only
  Transport transport = Transport::kAuto;
};

// One rank's membership of a gang.
// Threads: confined to one; every rank makes the same calls in the same order.
// Errors: Unavailable (Fault::kCollective) if a peer is gone or late; the group
// is unusable afterwards.
class Group {
 public:
  // Waits for all ranks.
  static absl::StatusOr<std::unique_ptr<Group>> Join(const GroupOptions& options);
  ~Group();

  int rank() const;
  int world_size() const;

  // The transport in use; never kAuto.
  Transport transport() const;

  // values[i] becomes its sum over all ranks, with the same bits on each.
  absl::Status Sum(absl::Span<float> values);
  // A contiguous float32 tensor on any device becomes its mean over all ranks. Errors: torch's
  // exceptions.
  void Average(at::Tensor& values);
  // values become those of rank 0.
  absl::Status Broadcast(absl::Span<float> values);
  absl::Status Broadcast(absl::Span<int64_t> values);
  absl::Status Barrier();

  // Returns the time spent in the calls above since the last call, and resets it. Communication
  // that overlaps with a backward pass does not count.
  absl::Duration ConsumeTime();

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  explicit Group(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Averages gradients over the ranks.
// Gloo and NCCL: during the backward pass, by c10d's Reducer. Gradients are then views of its
// buckets, so they must be reset after the step, never zeroed.
// Shared memory: after the backward pass. That takes a few percent of a small model's step, and
// adds up in the same order in every run.
// While gradients are only accumulated, no method is called.
// Threads: confined to one. Errors: torch's exceptions.
class GradientReducer {
 public:
  GradientReducer(Group& group, const std::vector<at::Tensor>& parameters);
  ~GradientReducer();

  // Call these around an autograd pass that ends an optimizer step, but not around a
  // handwritten backward pass.
  void BeforeForward();
  void BeforeBackward();
  // gradients: all of this rank's, [n] float32 each, contiguous. They become the means over the
  // ranks, unless the backward pass has already averaged them.
  void Average(std::vector<at::Tensor> gradients);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace traind
