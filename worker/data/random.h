// Random numbers that are the same on every machine and in every version.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>

namespace traind {

// SplitMix64 (Steele, Lea, Flood 2014). Threads: confined to one.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15u;
    return Mix(state_);
  }

  // Returns a number in 0..n-1, with a bias below n / 2^64. REQUIRES: n > 0.
  uint64_t Below(uint64_t n) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(Next()) * n) >> 64);
  }

  // Returns a number in [0, 1).
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

  // Returns a standard normal number (Box-Muller; the second value is dropped).
  double Normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - Uniform()));
    return radius * std::cos(6.283185307179586 * Uniform());
  }

  static uint64_t Mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }

 private:
  uint64_t state_;
};

// The purpose of a stream of random numbers. Streams of the same seed are independent.
enum class Stream : uint64_t {
  kWeights = 1,
  kOrder = 2,
  kDropout = 3,
  kModel = 4,
  kMedia = 5,
  kImportance = 6
};

inline uint64_t StreamSeed(uint64_t seed, Stream stream, uint64_t a, uint64_t b = 0,
                           uint64_t c = 0) {
  uint64_t x = Random::Mix(seed + 0x9e3779b97f4a7c15u);
  for (const uint64_t part : {static_cast<uint64_t>(stream), a, b, c}) {
    x = Random::Mix(x + 0x9e3779b97f4a7c15u + part);
  }
  return x;
}

// The seed of a fold's model number `model`. Model 0 uses the spec's seed.
inline uint64_t SeedOfModel(uint64_t seed, int model) {
  return model == 0 ? seed : StreamSeed(seed, Stream::kModel, static_cast<uint64_t>(model));
}

}  // namespace traind
