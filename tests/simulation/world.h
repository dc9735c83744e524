// The ground of a simulation: simulated time, chance from one seed, the history of
// what happened.
// Threads: confined to one.
#pragma once

#include <absl/time/time.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <queue>
#include <string>
#include <utility>
#include <vector>

namespace traind::simulation {

class SimProcess;

// One JSON object per thing that happened: {"t": us, "kind": ..., ...}.
using History = std::vector<nlohmann::json>;

// A generator of its own, so that a seed means the same on every machine.
class Chance {
 public:
  explicit Chance(uint64_t seed);
  uint64_t Next();
  double Uniform(double low = 0, double high = 1);
  int Int(int low, int high);  // both ends included
  bool Happens(double probability) { return Uniform() < probability; }
  double LogUniform(double low, double high);
  // Around 1, seldom far above it.
  double HeavyTail();

 private:
  uint64_t state_;
};

class World {
 public:
  explicit World(uint64_t seed) : chance(seed) {}

  absl::Time now() const { return now_; }
  absl::Time wall() const { return now_ + wall_offset; }
  void At(absl::Time at, std::function<void()> what);
  void After(absl::Duration delay, std::function<void()> what) {
    At(now_ + delay, std::move(what));
  }
  // Until nothing is left to do, or `end`.
  void Run(absl::Time end);

  // Returns the record, to add to.
  nlohmann::json& Record(const char* kind);

  static int64_t Micros(absl::Time time) {
    return time == absl::InfiniteFuture() ? -1 : absl::ToUnixMicros(time);
  }

  // The Ranks that have been told to train together, by Attempt.
  std::map<int64_t, std::vector<std::weak_ptr<SimProcess>>> gangs;

  Chance chance;
  absl::Duration wall_offset;
  History history;

 private:
  struct Item {
    absl::Time at;
    uint64_t sequence;
    std::function<void()> what;
    bool operator<(const Item& other) const {
      return std::tie(other.at, other.sequence) < std::tie(at, sequence);
    }
  };
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  uint64_t next_sequence_ = 0;
  std::priority_queue<Item> queue_;
};

}  // namespace traind::simulation
