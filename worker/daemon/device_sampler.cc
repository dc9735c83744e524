#include "worker/daemon/device_sampler.h"

#include <memory>
#include <optional>
#include <utility>

#include "common/base/clock.h"

namespace traind::worker {
namespace {

constexpr int kOldAfter = 10;  // readings

}  // namespace

DeviceSampler::DeviceSampler(std::vector<std::string> uuids, absl::Duration every)
    : uuids_(std::move(uuids)), every_(every), thread_([this] { Run(); }) {}

DeviceSampler::~DeviceSampler() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  stopped_.NotifyAll();
  thread_.join();
}

std::map<std::string, Nvml::Figures> DeviceSampler::Latest() {
  absl::MutexLock lock(&mutex_);
  // A driver that hangs tells nothing new.
  if (SystemClock().MonotonicNow() - read_at_ > kOldAfter * every_) return {};
  return latest_;
}

void DeviceSampler::Run() {
  const std::unique_ptr<Nvml> nvml = Nvml::Load();
  if (nvml == nullptr) return;
  const auto stopped = [this] {
    mutex_.AssertReaderHeld();
    return stop_;
  };
  while (true) {
    std::map<std::string, Nvml::Figures> figures;
    for (const std::string& uuid : uuids_) {
      if (const std::optional<Nvml::Figures> read = nvml->Read(uuid)) figures[uuid] = *read;
    }
    absl::MutexLock lock(&mutex_);
    latest_ = std::move(figures);
    read_at_ = SystemClock().MonotonicNow();
    if (stopped_.Await(mutex_, every_, stopped)) return;
  }
}

}  // namespace traind::worker
