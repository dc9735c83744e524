// Permutation importance: how much worse a model scores rows in which one column is shuffled.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>
#include <absl/types/span.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/facts/facts.h"
#include "common/metrics/metrics.h"
#include "worker/rank_protocol/messages.h"
#include "worker/task/event_sink.h"

namespace traind {

// A model with the rows that its fold validates. Ownership, threads: the trainer's.
class ColumnScorer {
 public:
  virtual ~ColumnScorer() = default;

  virtual std::vector<std::string> Columns() const = 0;
  virtual int64_t rows() const = 0;
  // Scores these rows from now on; they are places among rows(), ascending.
  virtual absl::Status Take(absl::Span<const int32_t> rows) = 0;
  // Returns the metric of the rows, where the value of `column` in row i is that of row order[i].
  // An empty order: the rows are as they are.
  virtual absl::StatusOr<double> Score(size_t column, absl::Span<const int32_t> order) = 0;
};

// Whether a fold that ends so tells the importance of its columns: the first model of each trial
// does, where it has all its epochs. With more than a hundred columns only trial 0 does, because
// what is told is stored.
bool TellsImportance(const rank_protocol::Train& train, StopCause cause, size_t columns);

// Returns the time that a fold may spend on its importance: a fifth of what it has trained, at most
// a hundredth of what is left until training has to stop, and at most ten seconds. There are many
// further trials, so a fold of theirs may spend a quarter of that, or 20 ms of it.
absl::Duration TimeForImportance(int trial, absl::Duration trained, absl::Duration left);

// Does the next, and sends what it finds; a failure is a line of the log.
void TellImportance(ColumnScorer& scorer, Metric metric, uint64_t seed,
                    const rank_protocol::Train& train, EventSink& sink, const Clock& clock,
                    absl::Duration time);

// Shuffles each column of as many rows as `time` suffices for, several times where it suffices for
// all. Empty: the time does not suffice for a hundred rows (or all), or it was over before all
// columns were done. Equal seeds and rows give equal orders.
absl::StatusOr<facts::Importance> ImportanceOf(ColumnScorer& scorer, Metric metric, uint64_t seed,
                                               const Clock& clock, absl::Duration time);

}  // namespace traind
