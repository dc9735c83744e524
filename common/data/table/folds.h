// The split of training rows into folds. It depends only on the seed, not on the machine or its
// standard library.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "common/data/table/table.h"

namespace traind {

// A stream of random numbers (SplitMix64), implemented here so that it is the same everywhere.
// Threads: confined to one.
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

// The sample of row r consists of the rows r - horizon - window + 1 to r - horizon of its series,
// and the target of row r.
struct SampleShape {
  int64_t window = 1;
  int64_t horizon = 0;
  // Each row is predicted from exactly `horizon` rows before it, also where newer ones would be
  // known; the targets of test rows count as known from then on.
  bool rolling = false;

  // The number of rows that must come before r in its series.
  int64_t history() const { return window - 1 + horizon; }
};

enum class SplitKind {
  kAuto,        // by the fold, group or time column if there is one, else kStratified
  kKFold,       // at random
  kStratified,  // each fold has its share of every class, or of small and large values
  kGrouped,     // no group is in two folds
  kForward,     // each fold comes after all rows that it is trained on
  kColumn,      // given by a column
};
// Known names are "" and auto, kfold, stratified, grouped, forward, column. InvalidArgument lists
// them.
absl::StatusOr<SplitKind> SplitByName(absl::string_view name);
absl::string_view SplitName(SplitKind kind);

struct SplitSpec {
  SplitKind kind = SplitKind::kAuto;
  int folds = 0;
  uint64_t seed = 0;
  SampleShape shape;

  // Resolves kAuto for this table.
  SplitKind KindFor(const Table& table) const;
};

// Returns which training rows may be trained on and scored: those that have all targets and the
// history that a sample needs.
std::vector<bool> UsableRows(const Table& table, const SampleShape& shape);

// Returns int16 [train_rows]: the fold that validates each row, or -1 for none (the row is not
// usable, comes before all folds of a forward split, or the column excludes it). In a forward split
// the first block is longer than the others where fold 0 would have less than half a block to train
// on. InvalidArgument: a fold would be empty, or no row has enough history.
absl::StatusOr<std::vector<int16_t>> MakeFolds(const Table& table, const SplitSpec& split);

// Returns the rows that a fold is trained on, ascending. In a forward split all are earlier than
// the rows that the fold validates; in a series by `horizon` rows or more, because later targets
// are not known when the first validation row is predicted.
std::vector<int32_t> TrainingRows(const Table& table, absl::Span<const int16_t> fold_of, int fold,
                                  const SplitSpec& split);

// Returns int16 [rows]; fold sizes differ by at most one. InvalidArgument: fewer rows than folds.
//
// Folds are stratified by class: the rows of each class are shuffled and dealt to the folds in
// turn. Each class continues at the fold where the one before ended, so the numbers of a class's
// rows in the folds differ by at most one.
absl::StatusOr<std::vector<int16_t>> StratifiedFolds(absl::Span<const int32_t> classes, int folds,
                                                     uint64_t seed);
// Folds are stratified by value: rows are sorted by value, and each k consecutive ones are dealt to
// the k folds in a random order.
absl::StatusOr<std::vector<int16_t>> StratifiedFolds(absl::Span<const float> values, int folds,
                                                     uint64_t seed);
// Rows are shuffled and dealt to the folds in turn.
absl::StatusOr<std::vector<int16_t>> RandomFolds(size_t rows, int folds, uint64_t seed);
// Groups are assigned from the largest to the smallest, each to the fold with the fewest rows so
// far; groups of equal size come in a random order. InvalidArgument: fewer groups than folds.
absl::StatusOr<std::vector<int16_t>> GroupedFolds(absl::Span<const int32_t> groups, int folds,
                                                  uint64_t seed);
// Rows are sorted by time and cut, between two different times, into folds + 1 blocks of about the
// same size; where first_rows is more than that, the first one has about so many rows. The first
// block is validated by no fold (-1), block b by fold b - 1. InvalidArgument: too few different
// times.
absl::StatusOr<std::vector<int16_t>> ForwardFolds(absl::Span<const double> times, int folds,
                                                  size_t first_rows = 0);

}  // namespace traind
