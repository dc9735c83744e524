// Draws the numbers of a setting: the same on every machine, as the standard library's
// distributions are not.
#pragma once

#include <cmath>
#include <cstdint>

namespace traind {

// Threads: confined to one.
class Draw {
 public:
  explicit Draw(uint64_t seed) : state_(seed) {}

  // [0, 1): SplitMix64, the upper 53 bits.
  double Unit() {
    uint64_t mixed = state_ += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    mixed ^= mixed >> 31;
    return static_cast<double>(mixed >> 11) * 0x1p-53;
  }
  double Between(double low, double high) { return low + (high - low) * Unit(); }
  double Log(double low, double high) { return std::exp(Between(std::log(low), std::log(high))); }
  int Int(int low, int high) { return low + static_cast<int>(Unit() * (high - low + 1)); }
  int LogInt(int low, int high) { return static_cast<int>(Log(low, high + 1)); }
  bool Flip() { return Unit() < 0.5; }

 private:
  uint64_t state_;
};

}  // namespace traind
