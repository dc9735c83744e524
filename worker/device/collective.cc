#include "worker/device/collective.h"

#include <ATen/ops/from_blob.h>
#include <absl/strings/str_cat.h>
#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <utility>

#include "common/durable_file.h"
#include "common/status_macros.h"
#include "worker/device/cuda_api.h"
#include "worker/device/guard.h"

namespace traind {
namespace {

constexpr int64_t kFirstBucketBytes = 1 << 20;
constexpr int64_t kBucketBytes = 25 << 20;

// A socket that listens on host:port alone. TCPStore by itself would listen on
// every address of the machine.
absl::StatusOr<int> Listen(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string where = absl::StrCat(host, ":", port);
  const int error = getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &found);
  if (error != 0) {
    return absl::UnavailableError(absl::StrCat("rendezvous ", where, ": ", gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return ErrnoStatus(errno, "socket");
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd, found->ai_addr, found->ai_addrlen) != 0 || listen(fd, SOMAXCONN) != 0) {
    absl::Status status = ErrnoStatus(errno, absl::StrCat("listen on ", where));
    close(fd);
    return status;
  }
  return fd;
}

template <class T>
at::Tensor TensorOver(absl::Span<T> values) {
  return at::from_blob(values.data(), {static_cast<int64_t>(values.size())},
                       at::TensorOptions().dtype(c10::CppTypeToScalarType<T>::value));
}

}  // namespace

struct Group::Impl {
  GroupOptions options;
  c10::intrusive_ptr<c10d::TCPStore> store;
  c10::intrusive_ptr<c10d::ProcessGroup> group;

  absl::Status Connect() {
    const std::chrono::milliseconds timeout(absl::ToInt64Milliseconds(options.timeout));
    c10d::TCPStoreOptions store_options;
    store_options.port = static_cast<uint16_t>(options.port);
    store_options.isServer = options.rank == 0;
    store_options.numWorkers = static_cast<size_t>(options.world_size);
    store_options.timeout = timeout;
    if (options.rank == 0) {
      ASSIGN_OR_RETURN(const int fd, Listen(options.host, options.port));
      store_options.masterListenFd = fd;  // the store owns it from here
    }
    store = c10::make_intrusive<c10d::TCPStore>(options.host, store_options);
    group = c10::make_intrusive<c10d::ProcessGroup>(store, options.rank, options.world_size);
    auto gloo_options = c10d::ProcessGroupGloo::Options::create(timeout);
    gloo_options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(options.host));
    auto gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(store, options.rank, options.world_size,
                                                            gloo_options);
    group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::GLOO, gloo);
    group->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
    if (options.cuda != nullptr) {
      options.cuda->AddNccl(*group, *store, options.rank, options.world_size, timeout);
    }
    return absl::OkStatus();
  }

  template <class T>
  absl::Status Broadcast(absl::Span<T> values) {
    return Guarded([&] {
      std::vector<at::Tensor> tensors{TensorOver(values)};
      group->broadcast(tensors)->wait();
      return absl::OkStatus();
    });
  }
};

absl::StatusOr<std::unique_ptr<Group>> Group::Join(const GroupOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  const absl::Status joined = Guarded([&] { return impl->Connect(); });
  if (FaultOf(joined) == Fault::kOutOfMemory) return joined;
  if (!joined.ok()) {
    return CollectiveError(absl::StrCat("rank ", options.rank, " of ", options.world_size,
                                        " could not join at ", options.host, ":", options.port,
                                        ": ", joined.message()));
  }
  return std::unique_ptr<Group>(new Group(std::move(impl)));
}

Group::Group(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Group::~Group() = default;

int Group::rank() const { return impl_->options.rank; }
int Group::world_size() const { return impl_->options.world_size; }

absl::Status Group::Sum(absl::Span<float> values) {
  if (values.empty()) return absl::OkStatus();
  return Guarded([&] {
    std::vector<at::Tensor> tensors{TensorOver(values)};
    impl_->group->allreduce(tensors)->wait();
    return absl::OkStatus();
  });
}

absl::Status Group::Broadcast(absl::Span<float> values) {
  return values.empty() ? absl::OkStatus() : impl_->Broadcast(values);
}

absl::Status Group::Broadcast(absl::Span<int64_t> values) {
  return values.empty() ? absl::OkStatus() : impl_->Broadcast(values);
}

absl::Status Group::Barrier() {
  float token = 0;
  return Sum(absl::MakeSpan(&token, 1));
}

struct GradientReducer::Impl {
  Impl(Group& group, const std::vector<at::Tensor>& parameters,
       const std::vector<std::vector<size_t>>& buckets, const std::vector<bool>& dense)
      : reducer(parameters, buckets, group.impl().group, dense, kBucketBytes,
                /*find_unused_parameters=*/false, /*gradient_as_bucket_view=*/true,
                /*param_names=*/{}, kFirstBucketBytes, /*skip_all_reduce_unused_params=*/false,
                /*use_python_reducer=*/false, /*bucket_bytes_cap_list=*/{}) {}
  c10d::Reducer reducer;
};

GradientReducer::GradientReducer(Group& group, const std::vector<at::Tensor>& parameters) {
  const std::vector<bool> dense(parameters.size(), false);
  auto buckets = std::get<0>(c10d::compute_bucket_assignment_by_size(
      parameters, {kFirstBucketBytes, kBucketBytes}, dense));
  std::reverse(buckets.begin(), buckets.end());  // gradients come last layer first
  impl_ = std::make_unique<Impl>(group, parameters, buckets, dense);
}

GradientReducer::~GradientReducer() = default;

void GradientReducer::BeforeForward() {
  impl_->reducer.prepare_for_forward();
  impl_->reducer.rebuild_buckets();
}

void GradientReducer::BeforeBackward() { impl_->reducer.prepare_for_backward({}); }

}  // namespace traind
