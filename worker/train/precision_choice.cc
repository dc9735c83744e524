#include "worker/train/precision_choice.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include "common/base/status_macros.h"

namespace traind {
namespace {

// A timing: steps that warm up, one or those before one is recorded, then so many that count; short
// ones vary more, and cost little.
constexpr int kTimedShort = 5, kTimedLong = 2, kTimedInPart = 1;
constexpr double kLongStep = 0.02;  // seconds
int64_t StepsOfTimings(const Learner& learner, int timed) {
  return 2 * (learner.steps_before_pace() + timed);
}
// Below this a step is dispatch, not arithmetic, and casts only add to it.
constexpr double kLeastFlops = 1e8;
// A slow core, and a slow GPU, compute at least as fast as this; it serves a guess before the first
// step.
constexpr double kFlopsPerSecond = 2e10, kGpuFlopsPerSecond = 1e12;
constexpr double kMostOfTime = 0.05;
constexpr double kLeastGain = 1.1;  // for the digits that bf16 gives up
// Where steps are too long to be timed, a part of one is: it takes that part of the time, but for
// what does not depend on the rows.
constexpr int64_t kParts = 8, kLeastRows = 8;

void Decide(const PrecisionRequest& request, EventSink& sink, std::string cause, Precision from,
            Precision to) {
  rank_protocol::Decision decision;
  decision.attempt = request.attempt;
  decision.rule = DecisionRule::kPrecision;
  decision.cause = std::move(cause);
  decision.from = std::string(PrecisionName(from));
  decision.to = std::string(PrecisionName(to));
  sink.Send(decision);
}

bool OnGpu(const PrecisionRequest& request) { return request.compute_capability > 0; }

double StepFlops(const PrecisionRequest& request, const Learner& learner) {
  return 6.0 * static_cast<double>(TotalSize(learner.layout())) *
         static_cast<double>(request.batch * request.window);
}

// Whether a few steps are little beside those to come, as far as that is known before
// the first one.
bool HasTimeForProbe(const PrecisionRequest& request, const Learner& learner) {
  if (static_cast<int64_t>(request.training_rows.size()) < request.batch) return false;
  if (request.planned_steps * kMostOfTime <
      static_cast<double>(StepsOfTimings(learner, kTimedLong))) {
    return false;
  }
  const double first_s =
      2 * StepFlops(request, learner) / (OnGpu(request) ? kGpuFlopsPerSecond : kFlopsPerSecond);
  return absl::Seconds(first_s) < request.remaining * kMostOfTime;
}

bool ProbeWorthIts(const PrecisionRequest& request, const Learner& learner) {
  const bool gains =
      OnGpu(request) || (CpuMultipliesBf16() && StepFlops(request, learner) >= kLeastFlops);
  return gains && HasTimeForProbe(request, learner);
}

struct StepTime {
  double whole_s = 0;
  double computing_s = 0;  // without the wait for the batch, which is loaded ahead in training
};

absl::StatusOr<StepTime> TimeStep(const PrecisionRequest& request, int64_t rows, int world_size,
                                  Learner& learner) {
  RETURN_IF_ERROR(learner.ConsumeLoss().status());
  const auto started = std::chrono::steady_clock::now();
  RETURN_IF_ERROR(request.step({0, rows, rows * world_size, 1e-6}));
  RETURN_IF_ERROR(learner.Synchronize());
  StepTime time;
  time.whole_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  ASSIGN_OR_RETURN(const LossSum step, learner.ConsumeLoss());
  time.computing_s = std::max(0.0, time.whole_s - step.gather_s);
  return time;
}

// How many steps of each kind are timed, where one takes so long and is that share of a whole one;
// 0: none, for want of time.
int StepsWorthTiming(const PrecisionRequest& request, const Learner& learner, double step_s,
                     double share) {
  for (const int timed : {kTimedShort, kTimedLong, kTimedInPart}) {
    if (timed == kTimedShort && step_s > kLongStep) continue;
    if (timed == kTimedInPart && share == 1) continue;
    const auto steps = static_cast<double>(StepsOfTimings(learner, timed));
    if (steps * share <= request.planned_steps * kMostOfTime &&
        absl::Seconds(steps * step_s) <= request.remaining * kMostOfTime) {
      return timed;
    }
  }
  return 0;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct StepTimes {
  double before_s = 0, after_s = 0;
  int64_t rows = 0;  // of the steps
};

// Times a step before and after `change`, then puts the learner's state back. Returns nothing where
// the first steps have shown that there is no time to find out. parts: a part of a step will do.
absl::StatusOr<std::optional<StepTimes>> CompareSteps(const PrecisionRequest& request, bool parts,
                                                      Learner& learner, Gang& gang,
                                                      const std::function<absl::Status()>& change) {
  int64_t rows = request.batch;
  const auto time_step = [&] { return TimeStep(request, rows, gang.world_size(), learner); };
  ASSIGN_OR_RETURN(const Learner::State state, learner.Save());
  RETURN_IF_ERROR(learner.SetOrder(request.training_rows.first(static_cast<size_t>(rows))));
  ASSIGN_OR_RETURN(const StepTime first, time_step());
  int64_t in_part = parts && rows / kParts >= kLeastRows &&
                            StepsWorthTiming(request, learner, first.whole_s, 1) == 0
                        ? 1
                        : 0;
  RETURN_IF_ERROR(gang.ShareNumber(in_part));
  if (in_part != 0) {
    rows /= kParts;
    RETURN_IF_ERROR(time_step().status());  // warms up what is of this size
  }
  ASSIGN_OR_RETURN(const StepTime second, time_step());
  std::vector<double> before = {second.computing_s}, after;
  int64_t timed =
      StepsWorthTiming(request, learner, second.whole_s, in_part != 0 ? 1.0 / kParts : 1);
  RETURN_IF_ERROR(gang.ShareNumber(timed));
  // Two have been taken.
  const auto warm_up = [&](int64_t taken) -> absl::Status {
    for (; taken < learner.steps_before_pace(); ++taken) RETURN_IF_ERROR(time_step().status());
    return absl::OkStatus();
  };
  if (timed > 0) {
    if (learner.steps_before_pace() > 2) {
      RETURN_IF_ERROR(warm_up(2));
      before.clear();
    }
    while (static_cast<int64_t>(before.size()) < timed) {
      ASSIGN_OR_RETURN(const StepTime step, time_step());
      before.push_back(step.computing_s);
    }
    RETURN_IF_ERROR(change());
    RETURN_IF_ERROR(warm_up(0));
    while (static_cast<int64_t>(after.size()) < timed) {
      ASSIGN_OR_RETURN(const StepTime step, time_step());
      after.push_back(step.computing_s);
    }
  }
  RETURN_IF_ERROR(learner.Load(state));
  RETURN_IF_ERROR(learner.ConsumeLoss().status());
  if (timed == 0) return std::optional<StepTimes>();
  return std::optional<StepTimes>({Median(before), Median(after), rows});
}

// half: what is tried beside fp32. Where there was no time to find out, it is `unknown`.
absl::StatusOr<Precision> Probe(const PrecisionRequest& request, Precision half, Precision unknown,
                                Learner& learner, Gang& gang, EventSink& sink) {
  RETURN_IF_ERROR(learner.SetPrecision(Precision::kFp32));
  ASSIGN_OR_RETURN(const auto times, CompareSteps(request, /*parts=*/true, learner, gang,
                                                  [&] { return learner.SetPrecision(half); }));
  Precision chosen = unknown;
  if (times) chosen = times->before_s > times->after_s * kLeastGain ? half : Precision::kFp32;
  auto agreed = static_cast<int64_t>(chosen);
  RETURN_IF_ERROR(gang.ShareNumber(agreed));
  chosen = static_cast<Precision>(agreed);
  if (gang.leads() && times && chosen != unknown) {
    Decide(request, sink,
           absl::StrFormat("a step of %d rows takes %.2f ms in %s, %.2f ms in fp32", times->rows,
                           times->after_s * 1e3, PrecisionName(half), times->before_s * 1e3),
           unknown, chosen);
  }
  RETURN_IF_ERROR(learner.SetPrecision(chosen));
  return chosen;
}

}  // namespace

Precision SupportedPrecision(const PrecisionRequest& request, EventSink& sink) {
  const bool gpu = OnGpu(request);
  const Precision best16 = request.compute_capability >= 80 ? Precision::kBf16 : Precision::kFp16;
  if (!request.wanted.has_value()) return gpu ? best16 : Precision::kFp32;
  const Precision wanted = *request.wanted;
  Precision supported = wanted;
  std::string cause;
  if (!gpu && (wanted == Precision::kFp16 || wanted == Precision::kTf32)) {
    supported = Precision::kFp32;
    cause = absl::StrCat(PrecisionName(wanted), " needs a GPU");
  } else if (gpu && request.compute_capability < 80 && wanted == Precision::kBf16) {
    supported = Precision::kFp16;
    cause = absl::StrCat("bf16 needs sm_80, the GPU is sm_", request.compute_capability);
  } else if (gpu && request.compute_capability < 80 && wanted == Precision::kTf32) {
    supported = Precision::kFp32;
    cause = absl::StrCat("tf32 needs sm_80, the GPU is sm_", request.compute_capability);
  }
  if (supported != wanted) Decide(request, sink, cause, wanted, supported);
  return supported;
}

absl::StatusOr<Precision> ChoosePrecision(const PrecisionRequest& request, Learner& learner,
                                          Gang& gang, EventSink& sink) {
  const Precision supported = SupportedPrecision(request, sink);
  RETURN_IF_ERROR(learner.SetPrecision(supported));
  if (request.wanted.has_value()) return supported;
  int64_t probe = ProbeWorthIts(request, learner) ? 1 : 0;
  RETURN_IF_ERROR(gang.ShareNumber(probe));
  if (probe == 0) return supported;
  return Probe(request, OnGpu(request) ? supported : Precision::kBf16, supported, learner, gang,
               sink);
}

SpeedPaths PathsWorthTheirStart(SpeedPaths paths, absl::Duration left) {
  constexpr absl::Duration kTrialsPay = absl::Minutes(10);
  paths.cudnn_benchmark = paths.cudnn_benchmark && left >= kTrialsPay;
  return paths;
}

bool IsWorthHalf(absl::Duration in_full, absl::Duration left) {
  constexpr absl::Duration kLeast = absl::Milliseconds(20);  // below it there is little to gain
  return in_full >= kLeast && in_full <= kMostOfTime * left;
}

bool HalfWillDo(Metric metric, const Validation& full, const Validation& half, int64_t rows) {
  // Half a standard error: that of a share, and for errors that of a root mean square of normal
  // numbers, which is 0.7 of it over the root of the rows. Besides, rounding that nobody sees.
  constexpr double kOfError = 0.5, kOfRootMeanSquare = 0.7, kOfScore = 0.0005;
  const double root = std::sqrt(static_cast<double>(rows));
  const double share = std::clamp(full.metric, 0.0, 1.0);
  const double error = (HigherIsBetter(metric) ? std::sqrt(share * (1 - share))
                                               : kOfRootMeanSquare * std::abs(full.metric)) /
                       root;
  const double most = kOfError * error + kOfScore * std::abs(full.metric);
  return std::abs(half.metric - full.metric) <= most && half.time * kLeastGain < full.time;
}

absl::StatusOr<int> ChooseThreads(const PrecisionRequest& request, int most, Learner& learner,
                                  Gang& gang, EventSink& sink) {
  if (most < 2 || OnGpu(request)) return most;
  int64_t probe = HasTimeForProbe(request, learner) ? 1 : 0;
  RETURN_IF_ERROR(gang.ShareNumber(probe));
  if (probe == 0) return most;
  ASSIGN_OR_RETURN(const auto times, CompareSteps(request, /*parts=*/false, learner, gang, [] {
                     SetTorchThreads(1);
                     return absl::OkStatus();
                   }));
  if (!times) return most;
  int64_t chosen = times->after_s > times->before_s * kLeastGain ? most : 1;
  RETURN_IF_ERROR(gang.ShareNumber(chosen));
  SetTorchThreads(static_cast<int>(chosen));
  if (gang.leads() && chosen == 1) {
    rank_protocol::Decision decision;
    decision.attempt = request.attempt;
    decision.rule = DecisionRule::kThreads;
    decision.cause = absl::StrFormat("a step takes %.2f ms with 1 thread, %.2f ms with %d",
                                     times->after_s * 1e3, times->before_s * 1e3, most);
    decision.from = absl::StrCat(most);
    decision.to = "1";
    sink.Send(decision);
  }
  return static_cast<int>(chosen);
}

}  // namespace traind
