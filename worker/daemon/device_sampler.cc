#include "worker/daemon/device_sampler.h"

#include <memory>
#include <optional>
#include <utility>

namespace traind::worker {

DeviceSampler::DeviceSampler(absl::Duration every) : every_(every), thread_([this] { Run(); }) {}

DeviceSampler::~DeviceSampler() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  stopped_.NotifyAll();
  thread_.join();
}

void DeviceSampler::Watch(std::set<std::string> uuids) {
  absl::MutexLock lock(&mutex_);
  uuids_ = std::move(uuids);
}

std::map<std::string, Nvml::Figures> DeviceSampler::Latest() {
  absl::MutexLock lock(&mutex_);
  return latest_;
}

void DeviceSampler::Run() {
  std::unique_ptr<Nvml> nvml;
  const auto wanted = [this] {
    mutex_.AssertReaderHeld();
    return stop_ || !uuids_.empty();
  };
  const auto stopped = [this] {
    mutex_.AssertReaderHeld();
    return stop_;
  };
  while (true) {
    std::set<std::string> uuids;
    {
      absl::MutexLock lock(&mutex_);
      if (uuids_.empty()) {
        latest_.clear();
        nvml.reset();  // it takes memory that an idle Worker has no use for
      }
      mutex_.Await(absl::Condition(&wanted));
      if (stop_) return;
      uuids = uuids_;
    }
    if (nvml == nullptr) nvml = Nvml::Load();
    std::map<std::string, Nvml::Figures> figures;
    for (const std::string& uuid : uuids) {
      if (nvml == nullptr) break;
      if (const std::optional<Nvml::Figures> read = nvml->Read(uuid)) figures[uuid] = *read;
    }
    absl::MutexLock lock(&mutex_);
    latest_ = std::move(figures);
    if (stopped_.Await(mutex_, every_, stopped)) return;
  }
}

}  // namespace traind::worker
