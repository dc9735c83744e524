#include "tests/simulation/world.h"

#include <algorithm>
#include <cmath>

namespace traind::simulation {

namespace {

uint64_t Mix(uint64_t z) {  // splitmix64
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

// Mixed twice, or neighbouring seeds would be one sequence, shifted by one.
Chance::Chance(uint64_t seed) : state_(Mix(Mix(seed + 0x2545f4914f6cdd1du) + seed)) {}

uint64_t Chance::Next() { return Mix(state_ += 0x9e3779b97f4a7c15u); }

double Chance::Uniform(double low, double high) {
  return low + (high - low) * static_cast<double>(Next() >> 11) * 0x1.0p-53;
}

int Chance::Int(int low, int high) {
  return low + static_cast<int>(Next() % static_cast<uint64_t>(high - low + 1));
}

double Chance::LogUniform(double low, double high) {
  return std::exp(Uniform(std::log(low), std::log(high)));
}

double Chance::HeavyTail() {
  const double body = Uniform(0.85, 1.2);
  return Happens(0.02) ? body * std::min(20.0, 1 / std::sqrt(Uniform(0.003, 1))) : body;
}

void World::At(absl::Time at, std::function<void()> what) {
  queue_.push({std::max(at, now_), next_sequence_++, std::move(what)});
}

void World::Run(absl::Time end) {
  while (!queue_.empty() && queue_.top().at <= end) {
    Item item = queue_.top();
    queue_.pop();
    now_ = item.at;
    item.what();
  }
}

nlohmann::json& World::Record(const char* kind) {
  history.push_back({{"t", Micros(now_)}, {"kind", kind}});
  return history.back();
}

}  // namespace traind::simulation
