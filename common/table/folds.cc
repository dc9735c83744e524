#include "common/table/folds.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace traind {
namespace {

absl::Status CheckCounts(size_t rows, int folds) {
  if (folds < 2 || folds > std::numeric_limits<int16_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat("data.folds is ", folds, ", must be 2 or more"));
  }
  if (rows < static_cast<size_t>(folds)) {
    return absl::InvalidArgumentError(
        absl::StrCat(rows, rows == 1 ? " training row is" : " training rows are",
                     " too few for data.folds: ", folds));
  }
  return absl::OkStatus();
}

}  // namespace

uint64_t SeededRandom::Next() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

uint64_t SeededRandom::Below(uint64_t bound) {
  // The numbers below 2^64 mod bound would come once too often.
  const uint64_t skip = (0 - bound) % bound;
  uint64_t number;
  do {
    number = Next();
  } while (number < skip);
  return number % bound;
}

absl::StatusOr<std::vector<int16_t>> StratifiedFolds(absl::Span<const int32_t> classes, int folds,
                                                     uint64_t seed) {
  if (absl::Status counts = CheckCounts(classes.size(), folds); !counts.ok()) return counts;
  const int32_t last = *std::max_element(classes.begin(), classes.end());
  std::vector<std::vector<size_t>> rows_of(static_cast<size_t>(last) + 1);
  for (size_t row = 0; row < classes.size(); ++row) {
    rows_of[static_cast<size_t>(classes[row])].push_back(row);
  }
  SeededRandom random(seed);
  std::vector<int16_t> fold_of(classes.size());
  int next = 0;
  for (std::vector<size_t>& rows : rows_of) {
    random.Shuffle(rows);
    for (const size_t row : rows) {
      fold_of[row] = static_cast<int16_t>(next);
      next = (next + 1) % folds;
    }
  }
  return fold_of;
}

absl::StatusOr<std::vector<int16_t>> StratifiedFolds(absl::Span<const float> values, int folds,
                                                     uint64_t seed) {
  if (absl::Status counts = CheckCounts(values.size(), folds); !counts.ok()) return counts;
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // Equal values in the order of rows, which may mean something, are mixed too.
  SeededRandom random(seed);
  random.Shuffle(order);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<int16_t> deal(static_cast<size_t>(folds));
  std::iota(deal.begin(), deal.end(), int16_t{0});
  std::vector<int16_t> fold_of(values.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t turn = i % deal.size();
    if (turn == 0) random.Shuffle(deal);
    fold_of[order[i]] = deal[turn];
  }
  return fold_of;
}

absl::StatusOr<std::vector<int16_t>> MakeFolds(const Table& table, int folds, uint64_t seed) {
  return table.schema().target_kind == TargetKind::kClasses
             ? StratifiedFolds(table.TargetClass(Split::kTrain), folds, seed)
             : StratifiedFolds(table.TargetValue(Split::kTrain), folds, seed);
}

}  // namespace traind
