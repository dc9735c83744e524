#include "common/data/table/folds.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

namespace traind {
namespace {

absl::Status CheckCounts(size_t rows, int folds) {
  if (folds < 2 || folds > std::numeric_limits<int16_t>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.folds is ", folds, ", but must be 2 or more"));
  }
  if (rows < static_cast<size_t>(folds)) {
    return absl::InvalidArgumentError(
        absl::StrCat(rows, rows == 1 ? " training row is" : " training rows are",
                     " too few for data.folds: ", folds));
  }
  return absl::OkStatus();
}

constexpr std::pair<absl::string_view, SplitKind> kSplitNames[] = {
    {"auto", SplitKind::kAuto},
    {"kfold", SplitKind::kKFold},
    {"stratified", SplitKind::kStratified},
    {"grouped", SplitKind::kGrouped},
    {"forward", SplitKind::kForward},
    {"column", SplitKind::kColumn},
};

template <typename T>
std::vector<T> Gather(absl::Span<const T> values, const std::vector<size_t>& rows) {
  std::vector<T> taken;
  taken.reserve(rows.size());
  for (const size_t row : rows) taken.push_back(values[row]);
  return taken;
}

absl::StatusOr<std::vector<int16_t>> GivenFolds(const std::vector<int32_t>& given, int folds) {
  std::vector<int64_t> rows(static_cast<size_t>(folds));
  int32_t most = -1;
  for (const int32_t fold : given) {
    most = std::max(most, fold);
    if (fold >= 0 && fold < folds) ++rows[static_cast<size_t>(fold)];
  }
  if (most + 1 != folds || std::count(rows.begin(), rows.end(), 0) > 0) {
    return absl::InvalidArgumentError(absl::StrCat("data.fold_column has ", most + 1,
                                                   " folds; data.folds says ", folds,
                                                   ", and each must have rows to validate"));
  }
  return std::vector<int16_t>(given.begin(), given.end());
}

absl::StatusOr<std::vector<int16_t>> FoldsOf(const Table& table, const SplitSpec& split,
                                             const std::vector<size_t>& rows) {
  const auto need = [](bool there, absl::string_view what) {
    return there ? absl::OkStatus()
                 : absl::InvalidArgumentError(absl::StrCat("data.split needs ", what));
  };
  switch (split.KindFor(table)) {
    case SplitKind::kKFold:
      return RandomFolds(rows.size(), split.folds, split.seed);
    case SplitKind::kGrouped:
      if (auto status = need(!table.Groups().empty(), "data.group"); !status.ok()) return status;
      return GroupedFolds(Gather(table.Groups(), rows), split.folds, split.seed);
    case SplitKind::kForward:
      if (auto status = need(table.schema().ordered, "data.time"); !status.ok()) return status;
      return ForwardFolds(Gather(table.Times(), rows), split.folds);
    case SplitKind::kColumn:
      if (auto status = need(!table.GivenFolds().empty(), "data.fold_column"); !status.ok()) {
        return status;
      }
      return GivenFolds(Gather(table.GivenFolds(), rows), split.folds);
    default:
      break;
  }
  return table.schema().target_kind == TargetKind::kClasses
             ? StratifiedFolds(Gather(table.TargetClass(Split::kTrain), rows), split.folds,
                               split.seed)
             : StratifiedFolds(Gather(table.TargetValue(Split::kTrain), rows), split.folds,
                               split.seed);
}

}  // namespace

uint64_t SeededRandom::Next() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

uint64_t SeededRandom::Below(uint64_t bound) {
  // Below 2^64 mod bound, numbers would come once too often, so they are drawn again.
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
  // Rows are shuffled first, because the order of rows with equal values may mean something.
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

absl::StatusOr<std::vector<int16_t>> RandomFolds(size_t rows, int folds, uint64_t seed) {
  if (absl::Status counts = CheckCounts(rows, folds); !counts.ok()) return counts;
  std::vector<size_t> order(rows);
  std::iota(order.begin(), order.end(), size_t{0});
  SeededRandom(seed).Shuffle(order);
  std::vector<int16_t> fold_of(rows);
  for (size_t i = 0; i < rows; ++i) {
    fold_of[order[i]] = static_cast<int16_t>(i % static_cast<size_t>(folds));
  }
  return fold_of;
}

absl::StatusOr<std::vector<int16_t>> GroupedFolds(absl::Span<const int32_t> groups, int folds,
                                                  uint64_t seed) {
  if (absl::Status counts = CheckCounts(groups.size(), folds); !counts.ok()) return counts;
  std::map<int32_t, size_t> size_of;
  for (const int32_t group : groups) ++size_of[group];
  if (size_of.size() < static_cast<size_t>(folds)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "data.group has ", size_of.size(),
        size_of.size() == 1 ? " group, too few" : " groups, too few", " for data.folds: ", folds));
  }
  std::vector<std::pair<int32_t, size_t>> order(size_of.begin(), size_of.end());
  SeededRandom(seed).Shuffle(order);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<size_t> rows_of(static_cast<size_t>(folds));
  std::map<int32_t, int16_t> fold_of_group;
  for (const auto& [group, size] : order) {
    const auto least = std::min_element(rows_of.begin(), rows_of.end());
    *least += size;
    fold_of_group[group] = static_cast<int16_t>(least - rows_of.begin());
  }
  std::vector<int16_t> fold_of;
  for (const int32_t group : groups) fold_of.push_back(fold_of_group[group]);
  return fold_of;
}

absl::StatusOr<std::vector<int16_t>> ForwardFolds(absl::Span<const double> times, int folds,
                                                  size_t first_rows) {
  if (absl::Status counts = CheckCounts(times.size(), folds); !counts.ok()) return counts;
  std::vector<size_t> order(times.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return times[a] < times[b]; });
  std::vector<int16_t> fold_of(times.size(), -1);
  const auto blocks = static_cast<size_t>(folds) + 1;
  size_t begin = 0;
  for (size_t block = 0; block < blocks; ++block) {
    size_t end = times.size() * (block + 1) / blocks;
    if (first_rows > times.size() / blocks) {
      const size_t others = times.size() - std::min(times.size(), first_rows);
      end = times.size() - others + others * block / static_cast<size_t>(folds);
    }
    // Rows of the same time stay together.
    while (end > 0 && end < times.size() && times[order[end]] == times[order[end - 1]]) ++end;
    if (end <= begin) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the rows have too few different times for data.folds: ", folds, " in a forward split"));
    }
    for (size_t i = begin; i < end; ++i) fold_of[order[i]] = static_cast<int16_t>(block) - 1;
    begin = end;
  }
  return fold_of;
}

absl::StatusOr<SplitKind> SplitByName(absl::string_view name) {
  for (const auto& [known, kind] : kSplitNames) {
    if (known == name) return kind;
  }
  if (name.empty()) return SplitKind::kAuto;
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown split '", name, "'; known: auto, kfold, stratified, grouped, forward, column"));
}

absl::string_view SplitName(SplitKind kind) {
  for (const auto& [name, known] : kSplitNames) {
    if (known == kind) return name;
  }
  return "auto";
}

SplitKind SplitSpec::KindFor(const Table& table) const {
  if (kind != SplitKind::kAuto) return kind;
  if (!table.GivenFolds().empty()) return SplitKind::kColumn;
  if (!table.Groups().empty()) return SplitKind::kGrouped;
  return table.schema().ordered ? SplitKind::kForward : SplitKind::kStratified;
}

std::vector<bool> UsableRows(const Table& table, const SampleShape& shape) {
  const TableSchema& schema = table.schema();
  std::vector<bool> usable(static_cast<size_t>(schema.train_rows), true);
  if (schema.target_kind == TargetKind::kClasses) {
    const auto classes = table.TargetClass(Split::kTrain);
    for (size_t row = 0; row < usable.size(); ++row) usable[row] = classes[row] >= 0;
  } else {
    for (size_t target = 0; target < schema.targets(); ++target) {
      const auto values = table.TargetValue(Split::kTrain, target);
      for (size_t row = 0; row < usable.size(); ++row) {
        if (!std::isfinite(values[row])) usable[row] = false;
      }
    }
  }
  uint64_t begin = 0;
  for (const uint64_t end : table.SeriesEnds(Split::kTrain)) {
    const uint64_t first = std::min(end, begin + static_cast<uint64_t>(shape.history()));
    std::fill(usable.begin() + static_cast<ptrdiff_t>(begin),
              usable.begin() + static_cast<ptrdiff_t>(first), false);
    begin = end;
  }
  return usable;
}

absl::StatusOr<std::vector<int16_t>> MakeFolds(const Table& table, const SplitSpec& split) {
  const std::vector<bool> usable = UsableRows(table, split.shape);
  std::vector<size_t> rows;
  for (size_t row = 0; row < usable.size(); ++row) {
    if (usable[row]) rows.push_back(row);
  }
  if (rows.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no training row has ", split.shape.history(),
        " rows of its series before it and a target: data.window is ", split.shape.window,
        ", data.horizon ", split.shape.horizon, ", of ", table.schema().train_rows, " rows"));
  }
  const auto of_table = [&](const std::vector<int16_t>& folds) {
    std::vector<int16_t> fold_of(usable.size(), -1);
    for (size_t i = 0; i < rows.size(); ++i) fold_of[rows[i]] = folds[i];
    return fold_of;
  };
  absl::StatusOr<std::vector<int16_t>> folds = FoldsOf(table, split, rows);
  if (!folds.ok()) return folds.status();
  std::vector<int16_t> fold_of = of_table(*folds);
  if (split.KindFor(table) != SplitKind::kForward) return fold_of;
  // Short series with a long horizon: of a block as long as the others, the rows whose targets
  // would not be known yet may leave too little for fold 0 to train on. Then the first block is
  // longer.
  const size_t block = std::max<size_t>(1, rows.size() / (static_cast<size_t>(split.folds) + 1));
  std::vector<int16_t> best = fold_of;
  size_t most = 0;
  for (size_t first = block; first < rows.size(); first += std::max<size_t>(1, block / 4)) {
    const size_t trained = TrainingRows(table, fold_of, /*fold=*/0, split).size();
    if (2 * trained >= block) return fold_of;
    if (trained > most) {
      most = trained;
      best = fold_of;
    }
    folds = ForwardFolds(Gather(table.Times(), rows), split.folds, first);
    if (!folds.ok()) break;
    fold_of = of_table(*folds);
  }
  return best;
}

std::vector<int32_t> TrainingRows(const Table& table, absl::Span<const int16_t> fold_of, int fold,
                                  const SplitSpec& split) {
  const std::vector<bool> usable = UsableRows(table, split.shape);
  const bool forward = split.KindFor(table) == SplitKind::kForward;
  std::vector<bool> trained(usable.size());
  for (size_t row = 0; row < usable.size(); ++row) {
    trained[row] = usable[row] && (forward ? fold_of[row] < fold : fold_of[row] != fold);
  }
  if (forward && split.shape.horizon > 1) {
    uint64_t begin = 0;
    for (const uint64_t end : table.SeriesEnds(Split::kTrain)) {
      uint64_t first = begin;  // the first row that the fold validates
      while (first < end && fold_of[first] != fold) ++first;
      const auto gap = static_cast<uint64_t>(split.shape.horizon - 1);
      for (uint64_t row = std::max(begin, first - std::min(first, gap)); row < first; ++row) {
        if (first < end) trained[row] = false;
      }
      begin = end;
    }
  }
  std::vector<int32_t> rows;
  for (size_t row = 0; row < trained.size(); ++row) {
    if (trained[row]) rows.push_back(static_cast<int32_t>(row));
  }
  return rows;
}

}  // namespace traind
