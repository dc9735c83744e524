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
  const CudaApi* cuda = nullptr;  // device tensors travel by NCCL; null: CPU only, by Gloo
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

  // values[i] becomes its sum over all ranks; the same bits on each.
  absl::Status Sum(absl::Span<float> values);
  // values become rank 0's.
  absl::Status Broadcast(absl::Span<float> values);
  absl::Status Broadcast(absl::Span<int64_t> values);
  absl::Status Barrier();

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  explicit Group(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Averages gradients over the ranks while the backward pass still runs (c10d's
// Reducer). Gradients are views of its buckets: after the optimizer's step reset
// them, never zero them. Errors: torch's exceptions.
class GradientReducer {
 public:
  GradientReducer(Group& group, const std::vector<at::Tensor>& parameters);
  ~GradientReducer();
  void BeforeForward();
  void BeforeBackward();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace traind
