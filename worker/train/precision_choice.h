// Which precision a task trains in, with how many threads, and by which of the faster paths.
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>
#include <absl/types/span.h>

#include <cstdint>
#include <functional>
#include <optional>

#include "common/metrics/metrics.h"
#include "worker/learner/learner.h"
#include "worker/task/event_sink.h"
#include "worker/train/gang.h"

namespace traind {

struct PrecisionRequest {
  // Takes a timed step; in several passes where memory does not suffice for one.
  std::function<absl::Status(const StepInput&)> step;
  int64_t attempt = 0;
  std::optional<Precision> wanted;  // by the Worker, the checkpoint or the spec; none: choose
  int compute_capability = 0;       // of the GPU (80 = sm_80); 0: on the CPU
  int64_t batch = 0;                // per rank
  absl::Span<const int32_t> training_rows;
  int64_t window = 1;  // time steps of a sample
  int64_t planned_steps = 0;
  absl::Duration remaining = absl::InfiniteDuration();  // until training must stop
};

// Returns the precision that the device can compute in and that is nearest to the wished one;
// another one than wished is a Decision. Where nothing is wished: on GPUs bf16 from sm_80 on and
// fp16 below; on the CPU fp32.
Precision SupportedPrecision(const PrecisionRequest& request, EventSink& sink);

// Sets the learner's precision, and returns it. Where nothing is wanted, a few timed steps of fp32
// and of bf16 (or the GPU's fp16) decide, of fewer rows where whole ones would take too long; on
// the CPU only if steps are large enough. Where there is no time for that, SupportedPrecision()
// does; the learner's state is put back afterwards. Every rank of the gang calls it. REQUIRES: the
// learner has no order yet.
absl::StatusOr<Precision> ChoosePrecision(const PrecisionRequest& request, Learner& learner,
                                          Gang& gang, EventSink& sink);

// CPU: 1 or `most` threads, whichever takes a timed step in less time (many must gain a
// tenth: they take cores from others); leaves the process so. Where there is nothing to
// choose or no time for it, `most`. As ChoosePrecision() otherwise, and before it.
absl::StatusOr<int> ChooseThreads(const PrecisionRequest& request, int most, Learner& learner,
                                  Gang& gang, EventSink& sink);

// Returns the paths without those whose start does not pay where so much time is left: cuDNN's
// trials of its algorithms may take seconds for each network, shape and precision.
SpeedPaths PathsWorthTheirStart(SpeedPaths paths, absl::Duration left);

// Whether validating once more, in half precision, may pay off. in_full: the time that it took in
// float32; left: until training must stop.
bool IsWorthHalf(absl::Duration in_full, absl::Duration left);

struct Validation {
  double metric = 0;
  absl::Duration time;
};

// Whether predictions may be computed in half precision. It must gain a tenth of the time, as in
// training, and change the score by less than the chance of which rows validate does.
bool HalfWillDo(Metric metric, const Validation& full, const Validation& half, int64_t rows);

}  // namespace traind
