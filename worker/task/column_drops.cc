#include "worker/task/column_drops.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "common/base/status_macros.h"
#include "worker/data/random.h"

namespace traind {
namespace {

constexpr double kShareOfLeft = 0.01, kShareOfTrained = 0.2;
constexpr double kShareOfFurtherTrials = 0.25;
constexpr absl::Duration kLittleTime = absl::Milliseconds(20);
constexpr size_t kMostColumnsOfFurtherTrials = 100;
constexpr absl::Duration kMostTime = absl::Seconds(10);
constexpr int64_t kTimedRows = 200, kFewestRows = 100, kMostRows = 20'000;
constexpr int kMostRounds = 5;
// The time is spent on rows only so far, because scores vary in what they take.
constexpr double kPlanned = 0.7;

std::vector<int32_t> SpreadRows(int64_t rows, int64_t count) {
  std::vector<int32_t> chosen(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    chosen[static_cast<size_t>(i)] = static_cast<int32_t>(i * rows / count);
  }
  return chosen;
}

void Shuffle(Random& random, std::vector<int32_t>& order) {
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
}

}  // namespace

bool TellsImportance(const rank_protocol::Train& train, StopCause cause, size_t columns) {
  const bool whole = cause == StopCause::kEpochs || cause == StopCause::kPatience;
  return whole && (train.trial == 0 || columns <= kMostColumnsOfFurtherTrials) && train.seed == 0 &&
         train.world_size == 1;
}

void TellImportance(ColumnScorer& scorer, Metric metric, uint64_t seed,
                    const rank_protocol::Train& train, EventSink& sink, const Clock& clock,
                    absl::Duration time) {
  const uint64_t own = StreamSeed(seed, Stream::kImportance, static_cast<uint64_t>(train.fold));
  absl::StatusOr<facts::Importance> found = ImportanceOf(scorer, metric, own, clock, time);
  if (!found.ok()) {
    sink.Send(rank_protocol::LogText{
        "warning", absl::StrCat("importance of columns: ", found.status().message())});
    return;
  }
  if (found->columns.empty()) return;
  rank_protocol::Importance told;
  static_cast<facts::Importance&>(told) = *std::move(found);
  told.attempt = train.attempt;
  sink.Send(told);
}

absl::Duration TimeForImportance(int trial, absl::Duration trained, absl::Duration left) {
  const absl::Duration time = std::min({kShareOfTrained * trained, kShareOfLeft * left, kMostTime});
  if (time <= absl::ZeroDuration()) return absl::ZeroDuration();
  return trial == 0 ? time : std::max(kShareOfFurtherTrials * time, std::min(time, kLittleTime));
}

absl::StatusOr<facts::Importance> ImportanceOf(ColumnScorer& scorer, Metric metric, uint64_t seed,
                                               const Clock& clock, absl::Duration time) {
  facts::Importance importance;
  const absl::Duration began = clock.MonotonicNow();
  const auto used = [&] { return clock.MonotonicNow() - began; };
  const std::vector<std::string> columns = scorer.Columns();
  if (columns.empty() || scorer.rows() < 2 || time <= absl::ZeroDuration()) return importance;
  const int64_t timed_rows = std::min(kTimedRows, scorer.rows());
  RETURN_IF_ERROR(scorer.Take(SpreadRows(scorer.rows(), timed_rows)));
  const absl::Duration before = used();
  RETURN_IF_ERROR(scorer.Score(0, {}).status());
  const double row_s = absl::ToDoubleSeconds(used() - before) / static_cast<double>(timed_rows);
  const double left_s = absl::ToDoubleSeconds(time - used());
  const double scores = static_cast<double>(columns.size()) + 2;
  const double fit =
      row_s > 0 ? kPlanned * left_s / (row_s * scores) : static_cast<double>(kMostRows);
  const int64_t all = std::min(scorer.rows(), kMostRows);
  const auto rows = static_cast<int64_t>(std::min(fit, static_cast<double>(all)));
  if (rows < std::min(kFewestRows, all)) return importance;
  RETURN_IF_ERROR(scorer.Take(SpreadRows(scorer.rows(), rows)));
  ASSIGN_OR_RETURN(const double whole, scorer.Score(0, {}));
  Random random(seed);
  std::vector<double> sums(columns.size());
  std::vector<int32_t> order(static_cast<size_t>(rows));
  int rounds = 0;
  for (; rounds < kMostRounds; ++rounds) {
    const absl::Duration round_began = used();
    std::vector<double> drops;
    for (size_t column = 0; column < columns.size() && used() < time; ++column) {
      std::iota(order.begin(), order.end(), 0);
      Shuffle(random, order);
      ASSIGN_OR_RETURN(const double score, scorer.Score(column, order));
      drops.push_back(HigherIsBetter(metric) ? whole - score : score - whole);
    }
    if (drops.size() < columns.size()) break;
    for (size_t i = 0; i < drops.size(); ++i) sums[i] += drops[i];
    if (used() + (used() - round_began) > time) {
      ++rounds;
      break;
    }
  }
  if (rounds == 0) return importance;
  importance.columns = columns;
  for (const double sum : sums) importance.drops.push_back(sum / rounds);
  return importance;
}

}  // namespace traind
