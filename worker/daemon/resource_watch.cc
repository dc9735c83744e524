#include "worker/daemon/resource_watch.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <utility>

#include "common/base/bytes_text.h"
#include "common/facts/usage.h"

namespace traind::worker {
namespace {

constexpr double kAdviseAfterS = 10;  // in the log
constexpr double kTellsAfterS = 1;    // in the sum; shorter tasks say nothing
constexpr int kLineEpochs = 10;
constexpr absl::Duration kLineEvery = absl::Seconds(1);

// Sums and means over all GPUs; below 0 where no GPU tells the figure.
struct Devices {
  double utilisation = -1, memory_bytes = -1, power_watts = -1, temperature_celsius = -1;
  double energy_joules = -1;
};

void AddKnown(double value, double& sum) {
  if (value >= 0) sum = std::max(0.0, sum) + value;
}

Devices Together(const std::vector<Nvml::Figures>& all) {
  Devices sum;
  int busy = 0;
  bool energy_known = !all.empty();
  for (const Nvml::Figures& one : all) {
    AddKnown(one.utilisation, sum.utilisation);
    busy += one.utilisation >= 0 ? 1 : 0;
    AddKnown(one.memory_bytes, sum.memory_bytes);
    AddKnown(one.power_watts, sum.power_watts);
    AddKnown(one.energy_joules, sum.energy_joules);
    energy_known = energy_known && one.energy_joules >= 0;
    sum.temperature_celsius = std::max(sum.temperature_celsius, one.temperature_celsius);
  }
  if (busy > 0) sum.utilisation /= busy;
  if (!energy_known) sum.energy_joules = -1;
  return sum;
}

}  // namespace

void ResourceWatch::Start(int64_t attempt, int slots, bool gpu, int64_t batch, std::string summary,
                          absl::Duration now) {
  Watched watched;
  watched.slots = std::max(1, slots);
  watched.gpu = gpu;
  watched.batch = batch;
  watched.sum.summary = std::move(summary);
  watched.last_at = now;
  watched_.insert_or_assign(attempt, std::move(watched));
}

void ResourceWatch::Read(int64_t attempt, const ResourceReading& reading, absl::Duration now) {
  const auto found = watched_.find(attempt);
  // A task that has just ended shows no processes any more.
  if (found == watched_.end() || reading.processes.resident_bytes == 0) return;
  Watched& w = found->second;
  const Devices devices = Together(reading.devices);
  w.sum.peak_memory_bytes = std::max(w.sum.peak_memory_bytes, reading.processes.resident_bytes);
  w.sum.peak_device_bytes =
      std::max(w.sum.peak_device_bytes, static_cast<int64_t>(devices.memory_bytes));
  w.told.resident_bytes = static_cast<double>(reading.processes.resident_bytes);
  w.told.device_utilisation = devices.utilisation;
  w.told.device_memory_bytes = devices.memory_bytes;
  w.told.power_watts = devices.power_watts;
  w.told.temperature_celsius = devices.temperature_celsius;
  const double seconds = absl::ToDoubleSeconds(now - w.last_at);
  if (w.last && seconds > 0) {
    // The processes of a gang end one by one, and their time with them.
    const double cpu_s = std::max(0.0, reading.processes.cpu_s - w.last->processes.cpu_s);
    const double all_s = reading.machine.all_s - w.last->machine.all_s;
    w.told.cpu_cores = cpu_s / seconds;
    if (all_s > 0) w.told.steal = (reading.machine.steal_s - w.last->machine.steal_s) / all_s;
    w.sum.seconds += seconds;
    w.sum.cpu_s += cpu_s;
    const double used = w.gpu                     ? devices.utilisation
                        : w.told.utilisation >= 0 ? w.told.utilisation
                                                  : std::min(1.0, w.told.cpu_cores / w.slots);
    if (used >= 0) {
      w.known_s += seconds;
      w.used_s += used * seconds;
    }
    w.wait_s += w.told.data_wait * seconds;
    w.exchange_s += w.told.exchange * seconds;
    w.pause_s += w.told.pause * seconds;
    w.steal_s += std::max(0.0, w.told.steal) * seconds;
    const double before = Together(w.last->devices).energy_joules;
    if (devices.energy_joules >= 0 && before >= 0) {
      w.sum.energy_joules =
          std::max(0.0, w.sum.energy_joules) + std::max(0.0, devices.energy_joules - before);
    } else if (devices.power_watts >= 0) {  // older GPUs count no energy
      w.sum.energy_joules = std::max(0.0, w.sum.energy_joules) + devices.power_watts * seconds;
    }
  }
  w.last = reading;
  w.last_at = now;
}

void ResourceWatch::Fill(int64_t attempt, facts::Progress& progress) {
  const auto found = watched_.find(attempt);
  if (found == watched_.end()) return;
  Watched& w = found->second;
  progress.cpu_cores = w.told.cpu_cores;
  progress.resident_bytes = w.told.resident_bytes;
  progress.steal = w.told.steal;
  progress.device_utilisation = w.told.device_utilisation;
  progress.device_memory_bytes = w.told.device_memory_bytes;
  progress.power_watts = w.told.power_watts;
  progress.temperature_celsius = w.told.temperature_celsius;
  w.sum.peak_memory_bytes = std::max(w.sum.peak_memory_bytes, progress.peak_memory_bytes);
  w.told = progress;
}

std::string ResourceWatch::Epoch(int64_t attempt, const facts::Epoch& epoch, absl::Duration now) {
  const auto found = watched_.find(attempt);
  if (found == watched_.end()) return "";
  Watched& w = found->second;
  if (w.first_epoch < 0) w.first_epoch = epoch.epoch;
  w.sum.epochs = epoch.epoch - w.first_epoch + 1;
  const bool due = epoch.epoch % kLineEpochs == 0 && now - w.line_at >= kLineEvery;
  if (!due || w.told.resident_bytes < 0) return "";
  w.line_at = now;
  std::string line =
      absl::StrCat("memory after ", epoch.epoch,
                   " epochs: ", BytesText(static_cast<int64_t>(w.told.resident_bytes)),
                   " resident (at most ", BytesText(w.sum.peak_memory_bytes), ")");
  if (w.told.device_memory_bytes >= 0) {
    absl::StrAppend(&line, ", ", BytesText(static_cast<int64_t>(w.told.device_memory_bytes)),
                    " of the GPUs (at most ", BytesText(w.sum.peak_device_bytes), ")");
  }
  return line;
}

std::string ResourceWatch::AdviceFor(const Watched& w) const {
  if (w.known_s < kTellsAfterS) return "";
  Usage usage;
  usage.utilisation = w.used_s / w.known_s;
  usage.data_wait = w.wait_s / w.sum.seconds;
  usage.exchange = w.exchange_s / w.sum.seconds;
  usage.pause = w.pause_s / w.sum.seconds;
  usage.steal = w.steal_s / w.sum.seconds;
  usage.core = std::min(1.0, w.sum.cpu_s / (w.sum.seconds * w.slots));
  usage.gpu = w.gpu;
  usage.batch = w.batch;
  return UsageAdvice(usage);
}

std::string ResourceWatch::Advice(int64_t attempt) {
  const auto found = watched_.find(attempt);
  if (found == watched_.end()) return "";
  Watched& w = found->second;
  // On a CPU the Rank warns.
  if (w.advised || !w.gpu || w.known_s < kAdviseAfterS) return "";
  w.advised = true;
  return AdviceFor(w);
}

std::optional<facts::Resources> ResourceWatch::Sum(int64_t attempt) const {
  const auto found = watched_.find(attempt);
  if (found == watched_.end()) return std::nullopt;
  facts::Resources sum = found->second.sum;
  const Watched& w = found->second;
  if (w.known_s > 0) sum.utilisation = w.used_s / w.known_s;
  sum.advice = AdviceFor(w);
  return sum;
}

std::string DeviceSummary(const std::vector<SummaryDevice>& devices,
                          const DriverVersions& versions) {
  if (devices.empty()) return "no devices";
  const SummaryDevice& first = devices.front();
  if (first.device != "cuda") {
    return absl::StrCat(devices.size(), " x cpu: ", first.name, ", ", BytesText(first.memory_bytes),
                        " of memory");
  }
  std::string text;
  for (const SummaryDevice& gpu : devices) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", gpu.name, " (", gpu.uuid, ", ",
                    BytesText(gpu.memory_bytes), ")");
  }
  if (!versions.driver.empty()) absl::StrAppend(&text, "; driver ", versions.driver);
  if (!versions.cuda.empty()) absl::StrAppend(&text, ", for CUDA up to ", versions.cuda);
  return text;
}

}  // namespace traind::worker
