// How well a task uses its machine, and what it says about that.
#pragma once

#include <absl/time/time.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace traind {

// A window of training, of one rank. Seconds.
struct UsageWindow {
  double wall_s = 0;
  double cpu_s = 0;       // of the process
  double gather_s = 0;    // putting batches together
  double exchange_s = 0;  // waiting for other ranks and adding up with them
  double pause_s = 0;     // validation, checkpoints, predictions: no steps
  int64_t micro_batches = 0;
};

// Share of the time in which the device computed steps, 0-1; -1: not known (GPUs).
double Utilisation(const UsageWindow& window, int threads, bool gpu);

// Decides how many threads load media: where training waits for them, twice as many, up to `most`.
// Threads: confined to one.
class LoaderWatch {
 public:
  static constexpr double kLookEveryS = 2;   // of training
  static constexpr double kMostWait = 0.15;  // of the time

  explicit LoaderWatch(int most) : most_(most) {}

  struct Change {
    int threads = 0;
    double wait = 0;  // the share of the time that was lost
  };
  // nullopt: as many as now.
  std::optional<Change> Add(const UsageWindow& window, int threads);

 private:
  const int most_;
  double busy_s_ = 0, gather_s_ = 0;
};

// Looks at the first kLookAfter of training and warns, once each, of what makes it slow: of bad
// utilisation (common/facts/usage.h; of a GPU its Worker tells), and, where samples are plain rows,
// of fewer than 500 batches a minute.
// Threads: confined to one.
class UsageWatch {
 public:
  static constexpr double kLookAfterS = 10;
  static constexpr double kLeastBatchesPerMinute = 500;

  // batch: of this rank, for the advice.
  UsageWatch(int threads, bool gpu, bool plain_rows, int64_t batch)
      : threads_(threads), gpu_(gpu), plain_rows_(plain_rows), batch_(batch) {}

  // Warnings, for users; at most one of each kind over a task.
  std::vector<std::string> Add(const UsageWindow& window);

 private:
  const int threads_;
  const bool gpu_;
  const bool plain_rows_;
  const int64_t batch_;
  UsageWindow sum_;
  bool done_ = false;
};

}  // namespace traind
