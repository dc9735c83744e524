// The split of training rows into folds: the same on every machine for the same
// seed, whatever its standard library.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "common/data/table/table.h"

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

// What the sample of a row is made of: the rows r - horizon - window + 1 to
// r - horizon of its series, and the target of row r.
struct SampleShape {
  int64_t window = 1;
  int64_t horizon = 0;

  // Rows that must stand before r in its series.
  int64_t history() const { return window - 1 + horizon; }
};

enum class SplitKind {
  kAuto,        // by the column of folds, groups or times that there is, else kStratified
  kKFold,       // at random
  kStratified,  // each fold has its share of every class, or of small and large values
  kGrouped,     // no group in two folds
  kForward,     // each fold comes after all that it is trained on
  kColumn,      // as a column says
};
// InvalidArgument lists the known names: "" and auto, kfold, stratified, grouped,
// forward, column.
absl::StatusOr<SplitKind> SplitByName(absl::string_view name);
absl::string_view SplitName(SplitKind kind);

struct SplitSpec {
  SplitKind kind = SplitKind::kAuto;
  int folds = 0;
  uint64_t seed = 0;
  SampleShape shape;

  // What kAuto means for this table.
  SplitKind KindFor(const Table& table) const;
};

// Which training rows may be trained on and scored: those that have all targets,
// and the history that a sample needs.
std::vector<bool> UsableRows(const Table& table, const SampleShape& shape);

// int16 [train_rows]: the fold that validates each row, or -1: none (the row is
// not usable, or comes before all folds of a forward split, or the column says so).
// InvalidArgument: a fold would be empty; no row has history enough.
absl::StatusOr<std::vector<int16_t>> MakeFolds(const Table& table, const SplitSpec& split);

// The rows that a fold is trained on, ascending. In a forward split all are
// earlier than the rows that it validates, and, in a series, `horizon` rows or
// more, as later targets are not known when the first of those is predicted.
std::vector<int32_t> TrainingRows(const Table& table, absl::Span<const int16_t> fold_of, int fold,
                                  const SplitSpec& split);

// int16 [rows]: fold sizes differ by one at most. InvalidArgument: fewer rows than folds.
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
// Rows are shuffled and dealt out in turn.
absl::StatusOr<std::vector<int16_t>> RandomFolds(size_t rows, int folds, uint64_t seed);
// The largest group first, each goes to the fold that has the fewest rows by then;
// equally large ones come in a random order. InvalidArgument: fewer groups than folds.
absl::StatusOr<std::vector<int16_t>> GroupedFolds(absl::Span<const int32_t> groups, int folds,
                                                  uint64_t seed);
// Rows in the order of their times are cut into folds + 1 blocks of about the same
// size, between two different times: the first validates nothing (-1), block b
// fold b - 1. InvalidArgument: too few different times.
absl::StatusOr<std::vector<int16_t>> ForwardFolds(absl::Span<const double> times, int folds);

}  // namespace traind
