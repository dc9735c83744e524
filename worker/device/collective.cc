#include "worker/device/collective.h"

#include <ATen/ops/from_blob.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <unordered_map>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/local_address.h"
#include "common/base/status_macros.h"
#include "worker/device/cuda_api.h"
#include "worker/device/guard.h"
#include "worker/device/shared_memory_group.h"

namespace traind {
namespace {

constexpr int64_t kFirstBucketBytes = 1 << 20;
constexpr int64_t kBucketBytes = 25 << 20;

// Returns a socket that listens on host:port only. TCPStore by itself would listen on every
// address of the machine.
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

// c10d records each collective, with a stack trace, for tools that look for a rank that hangs
// (FlightRecorder.hpp). Nothing reads that record here, it costs time in each step, and in LibTorch
// 2.11 ranks that are threads of one process write its map without a lock. Whoever wants the record
// sets the variable.
void KeepNoFlightRecord() {
  static std::once_flag once;
  std::call_once(once, [] { setenv("TORCH_FR_BUFFER_SIZE", "0", /*overwrite=*/0); });
}

absl::Status Tagged(const absl::Status& status) {
  return status.ok() ? status : CollectiveError(status.message());
}

}  // namespace

struct Group::Impl {
  GroupOptions options;
  c10::intrusive_ptr<c10d::TCPStore> store;
  // Exactly one of these two is set.
  std::unique_ptr<SharedMemoryGroup> memory;
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  absl::Duration time;  // spent in collectives

  // NCCL would wait for a dead peer, and end the process if it is destroyed while it waits. All
  // that counts has arrived, because each exchange was waited for.
  ~Impl() {
    if (group == nullptr || options.transport != Transport::kNccl) return;
    Guarded([this] {
      group->getBackend(c10::DeviceType::CUDA)->abort();
      return absl::OkStatus();
    }).IgnoreError();
  }
  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // Adds the time of its own life to `time`.
  class Timing {
   public:
    explicit Timing(Impl& impl) : impl_(impl), started_(std::chrono::steady_clock::now()) {}
    ~Timing() { impl_.time += absl::FromChrono(std::chrono::steady_clock::now() - started_); }
    Timing(const Timing&) = delete;
    Timing& operator=(const Timing&) = delete;

   private:
    Impl& impl_;
    const std::chrono::steady_clock::time_point started_;
  };

  absl::Status Connect() {
    RETURN_IF_ERROR(MeetAtStore());
    const bool gpu = options.cuda != nullptr;
    if (gpu != (options.transport == Transport::kNccl) && options.transport != Transport::kAuto) {
      return absl::InvalidArgumentError(absl::StrCat(
          "ranks on ", gpu ? "GPUs" : "CPUs", " cannot use ", TransportName(options.transport)));
    }
    if (!gpu && options.transport != Transport::kGloo) RETURN_IF_ERROR(ShareMemory());
    if (memory != nullptr) {
      options.transport = Transport::kSharedMemory;
      return absl::OkStatus();
    }
    options.transport = gpu ? Transport::kNccl : Transport::kGloo;
    ConnectProcessGroup();
    return absl::OkStatus();
  }

  absl::Status MeetAtStore() {
    const std::chrono::milliseconds timeout(absl::ToInt64Milliseconds(options.timeout));
    c10d::TCPStoreOptions store_options;
    store_options.port = static_cast<uint16_t>(options.port);
    store_options.isServer = options.rank == 0;
    store_options.numWorkers = static_cast<size_t>(options.world_size);
    store_options.timeout = timeout;
    if (options.rank == 0) {
      ASSIGN_OR_RETURN(const int fd, Listen(options.host, options.port));
      store_options.masterListenFd = fd;  // the store owns it from now on
    }
    store = c10::make_intrusive<c10d::TCPStore>(options.host, store_options);
    return absl::OkStatus();
  }

  // Either all ranks use shared memory or none: each reports whether it can open rank 0's
  // segment.
  absl::Status ShareMemory() {
    const std::string kAddress = "memory/address", kVerdict = "memory/verdict";
    const auto vote = [](int rank) { return absl::StrCat("memory/rank-", rank); };
    absl::StatusOr<std::unique_ptr<SharedMemoryGroup>> opened;
    if (options.rank == 0) {
      opened = SharedMemoryGroup::Create(options.world_size, options.timeout);
      SetText(kAddress, opened.ok() ? (*opened)->address() : "none");
      std::string verdict(opened.status().message());
      for (int rank = 1; rank < options.world_size; ++rank) {
        const std::string answer = GetText(vote(rank));
        if (verdict.empty() && !answer.empty()) verdict = absl::StrCat("rank ", rank, ": ", answer);
      }
      SetText(kVerdict, verdict);
    } else {
      opened = SharedMemoryGroup::Open(GetText(kAddress), options.rank, options.world_size,
                                       options.timeout);
      SetText(vote(options.rank), opened.status().message());
    }
    const std::string verdict = GetText(kVerdict);
    if (verdict.empty()) {
      memory = *std::move(opened);
      RETURN_IF_ERROR(memory->Seal());
      return memory->Barrier();  // rank 0 must not close the store before the others have read it
    }
    if (options.transport == Transport::kAuto) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("the ranks cannot share memory: ", verdict));
  }

  void SetText(const std::string& key, absl::string_view text) {
    store->set(key, std::vector<uint8_t>(text.begin(), text.end()));
  }
  // Waits until the key exists.
  std::string GetText(const std::string& key) {
    const std::vector<uint8_t> bytes = store->get(key);
    return std::string(bytes.begin(), bytes.end());
  }

  // On the network on which the ranks meet; rank 0's host may be another one.
  std::string OwnAddress() const {
    const bool v6 = absl::StrContains(options.host, ':');
    return LocalAddressTowards(
               absl::StrCat(v6 ? "[" : "", options.host, v6 ? "]:" : ":", options.port))
        .value_or(options.host);
  }

  void ConnectProcessGroup() {
    KeepNoFlightRecord();
    const std::chrono::milliseconds timeout(absl::ToInt64Milliseconds(options.timeout));
    group = c10::make_intrusive<c10d::ProcessGroup>(store, options.rank, options.world_size);
    auto gloo_options = c10d::ProcessGroupGloo::Options::create(timeout);
    gloo_options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(OwnAddress()));
    auto gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(store, options.rank, options.world_size,
                                                            gloo_options);
    group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::GLOO, gloo);
    group->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
    if (options.cuda != nullptr) {
      options.cuda->AddNccl(*group, *store, options.rank, options.world_size, timeout);
    }
  }

  template <class T>
  absl::Status Broadcast(absl::Span<T> values) {
    const Timing timing(*this);
    if (memory != nullptr) {
      return Tagged(memory->Broadcast(
          absl::MakeSpan(reinterpret_cast<char*>(values.data()), values.size() * sizeof(T))));
    }
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
  if (FaultOf(joined) == Fault::kOutOfMemory || absl::IsInvalidArgument(joined)) return joined;
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

Transport Group::transport() const { return impl_->options.transport; }

absl::Duration Group::ConsumeTime() { return std::exchange(impl_->time, absl::ZeroDuration()); }

absl::Status Group::Sum(absl::Span<float> values) {
  const Impl::Timing timing(*impl_);
  if (values.empty()) return absl::OkStatus();
  if (impl_->memory != nullptr) {
    return Tagged(impl_->memory->Sum(values, 1));
  }
  return Guarded([&] {
    std::vector<at::Tensor> tensors{TensorOver(values)};
    impl_->group->allreduce(tensors)->wait();
    return absl::OkStatus();
  });
}

void Group::Average(at::Tensor& values) {
  const Impl::Timing timing(*impl_);
  const float scale = 1.0f / static_cast<float>(world_size());
  if (impl_->memory != nullptr) {
    const auto span =
        absl::MakeSpan(values.mutable_data_ptr<float>(), static_cast<size_t>(values.numel()));
    const absl::Status status = impl_->memory->Sum(span, scale);
    TORCH_CHECK_WITH(DistBackendError, status.ok(), status.message());
    return;
  }
  std::vector<at::Tensor> tensors{values};
  impl_->group->allreduce(tensors)->wait();
  values.mul_(scale);
}

absl::Status Group::Broadcast(absl::Span<float> values) {
  return values.empty() ? absl::OkStatus() : impl_->Broadcast(values);
}

absl::Status Group::Broadcast(absl::Span<int64_t> values) {
  return values.empty() ? absl::OkStatus() : impl_->Broadcast(values);
}

absl::Status Group::Barrier() {
  const Impl::Timing timing(*impl_);
  if (impl_->memory != nullptr) return Tagged(impl_->memory->Barrier());
  return Guarded([&] {
    impl_->group->barrier()->wait();
    return absl::OkStatus();
  });
}

struct GradientReducer::Impl {
  Group& group;
  std::unique_ptr<c10d::Reducer> buckets;  // null: averaged after the backward pass
  bool averaged = false;                   // by the current or last backward pass
};

GradientReducer::GradientReducer(Group& group, const std::vector<at::Tensor>& parameters)
    : impl_(new Impl{group, nullptr, false}) {
  if (group.transport() == Transport::kSharedMemory) return;
  const std::vector<bool> dense(parameters.size(), false);
  auto buckets = std::get<0>(c10d::compute_bucket_assignment_by_size(
      parameters, {kFirstBucketBytes, kBucketBytes}, dense));
  std::reverse(buckets.begin(), buckets.end());  // gradients of the last layer come first
  impl_->buckets = std::make_unique<c10d::Reducer>(
      parameters, buckets, group.impl().group, dense, kBucketBytes,
      /*find_unused_parameters=*/false, /*gradient_as_bucket_view=*/true,
      /*param_names=*/std::unordered_map<size_t, std::string>{}, kFirstBucketBytes,
      /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false,
      /*bucket_bytes_cap_list=*/std::vector<int64_t>{});
}

GradientReducer::~GradientReducer() = default;

void GradientReducer::BeforeForward() {
  if (impl_->buckets == nullptr) return;
  impl_->buckets->prepare_for_forward();
  impl_->buckets->rebuild_buckets();
}

void GradientReducer::BeforeBackward() {
  if (impl_->buckets == nullptr) return;
  impl_->buckets->prepare_for_backward({});
  impl_->averaged = true;
}

void GradientReducer::Average(std::vector<at::Tensor> gradients) {
  if (std::exchange(impl_->averaged, false)) return;
  for (at::Tensor& gradient : gradients) impl_->group.Average(gradient);
}

}  // namespace traind
