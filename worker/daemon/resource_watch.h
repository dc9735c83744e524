// The resources of this machine that training Attempts use: figures for their metrics, lines for
// logs, the sum at their end.
#pragma once

#include <absl/time/time.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/facts/facts.h"
#include "third_party/nvml/nvml.h"
#include "worker/daemon/process_figures.h"

namespace traind::worker {

// One look at the processes of an Attempt and at their GPUs.
struct ResourceReading {
  ProcessFigures processes;            // of all of them
  std::vector<Nvml::Figures> devices;  // those that answered; none on CPUs
  MachineTime machine;
};

// Threads: confined to one. `now` never goes back.
class ResourceWatch {
 public:
  // Training has begun. slots: that the Attempt has on this machine; summary: its devices and
  // settings; batch: that of a rank.
  void Start(int64_t attempt, int slots, bool gpu, int64_t batch, std::string summary,
             absl::Duration now);
  void Read(int64_t attempt, const ResourceReading& reading, absl::Duration now);
  // Notes what the Rank tells, and adds what was measured to it.
  void Fill(int64_t attempt, facts::Progress& progress);
  // The epoch is done: a line for the log every ten epochs, and at most one a second; else empty.
  std::string Epoch(int64_t attempt, const facts::Epoch& epoch, absl::Duration now);
  // A warning for the log, once: devices wait. Empty: they do not, or it is too early to tell.
  std::string Advice(int64_t attempt);
  // The sum so far. None: it is not watched.
  std::optional<facts::Resources> Sum(int64_t attempt) const;
  void Forget(int64_t attempt) { watched_.erase(attempt); }

 private:
  struct Watched {
    int slots = 1;
    bool gpu = false;
    int64_t batch = 0;
    facts::Resources sum;
    std::optional<ResourceReading> last;
    absl::Duration last_at;
    facts::Progress told;            // the last one, with the figures of the last reading
    double known_s = 0, used_s = 0;  // of the utilisation
    double wait_s = 0, exchange_s = 0, pause_s = 0, steal_s = 0;
    int first_epoch = -1;  // the first one that was told
    absl::Duration line_at = -absl::InfiniteDuration();
    bool advised = false;
  };
  std::string AdviceFor(const Watched& watched) const;

  std::map<int64_t, Watched> watched_;
};

// "2 x cpu: Intel(R) Xeon(R), 16.0 GiB" or, with their UUIDs, GPUs and the versions of their
// driver.
struct DriverVersions {
  std::string driver, cuda;
};
struct SummaryDevice {
  std::string device, name, uuid;
  int64_t memory_bytes = 0;
};
std::string DeviceSummary(const std::vector<SummaryDevice>& devices,
                          const DriverVersions& versions);

}  // namespace traind::worker
