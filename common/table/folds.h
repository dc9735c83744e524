// The split of training rows into folds: the same on every machine for the same
// seed, whatever its standard library.
#pragma once

#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "common/table/table.h"

namespace traind {

// A stream of random numbers (SplitMix64): fixed arithmetic, no library's choice.
class SeededRandom {
 public:
  explicit SeededRandom(uint64_t seed) : state_(seed) {}
  uint64_t Next();
  // Uniform in 0..bound-1, without bias. REQUIRES: bound > 0.
  uint64_t Below(uint64_t bound);
  // Fisher-Yates.
  template <typename T>
  void Shuffle(std::vector<T>& values) {
    for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[Below(i)]);
  }

 private:
  uint64_t state_;
};

// int16 [rows]: the fold that validates each row. Fold sizes differ by one at
// most. InvalidArgument: fewer rows than folds.
//
// Classes are stratified: the rows of each class are shuffled and dealt out in
// turn, the next class going on at the fold where the one before ended, so that
// a class has the same number of rows in every fold, give or take one.
absl::StatusOr<std::vector<int16_t>> StratifiedFolds(absl::Span<const int32_t> classes, int folds,
                                                     uint64_t seed);
// Values are stratified too: rows in the order of their values are taken k at a
// time, and each k are dealt to the k folds in a random order.
absl::StatusOr<std::vector<int16_t>> StratifiedFolds(absl::Span<const float> values, int folds,
                                                     uint64_t seed);
// By the table's target.
absl::StatusOr<std::vector<int16_t>> MakeFolds(const Table& table, int folds, uint64_t seed);

}  // namespace traind
