#include "worker/train/precision_choice.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "common/status_macros.h"

namespace traind {
namespace {

constexpr int kWarmSteps = 2, kTimedSteps = 5;
constexpr int kProbeSteps = 2 * (kWarmSteps + kTimedSteps);
// Below this a step is dispatch, not arithmetic, and casts only add to it.
constexpr double kLeastFlops = 1e8;
// What a slow core does at least: for a guess of the probe's cost before it runs.
constexpr double kFlopsPerSecond = 2e10;
constexpr double kMostOfTime = 0.05;
constexpr double kLeastGain = 1.1;  // for the digits that bf16 gives up

void Decide(const PrecisionRequest& request, EventSink& sink, std::string cause, Precision from,
            Precision to) {
  rank_protocol::Decision decision;
  decision.attempt = request.attempt;
  decision.rule = "precision";
  decision.cause = std::move(cause);
  decision.from = std::string(PrecisionName(from));
  decision.to = std::string(PrecisionName(to));
  sink.Send(decision);
}

// Without instructions for it bf16 is emulated, many times slower.
bool CpuMultipliesBf16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

double StepFlops(const PrecisionRequest& request, const Learner& learner) {
  return 6.0 * static_cast<double>(TotalSize(learner.layout())) *
         static_cast<double>(request.batch * request.window);
}

// Whether so many steps are few beside those to come.
bool HasTimeForProbe(const PrecisionRequest& request, const Learner& learner) {
  const double flops = StepFlops(request, learner);
  if (static_cast<int64_t>(request.training_rows.size()) < request.batch) return false;
  if (request.planned_steps * kMostOfTime < kProbeSteps) return false;
  return absl::Seconds(kProbeSteps * flops / kFlopsPerSecond) < request.remaining * kMostOfTime;
}

bool ProbeWorthIts(const PrecisionRequest& request, const Learner& learner) {
  return CpuMultipliesBf16() && StepFlops(request, learner) >= kLeastFlops &&
         HasTimeForProbe(request, learner);
}

absl::StatusOr<double> MedianStep(const PrecisionRequest& request, int world_size) {
  std::vector<double> seconds;
  for (int i = 0; i < kWarmSteps + kTimedSteps; ++i) {
    const auto started = std::chrono::steady_clock::now();
    RETURN_IF_ERROR(request.step({0, request.batch, request.batch * world_size, 1e-6}));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
    if (i >= kWarmSteps) seconds.push_back(took.count());
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

absl::Status SetAnyOrder(const PrecisionRequest& request, Learner& learner) {
  return learner.SetOrder(request.training_rows.first(static_cast<size_t>(request.batch)));
}

absl::StatusOr<Precision> Probe(const PrecisionRequest& request, Learner& learner, Gang& gang,
                                EventSink& sink) {
  ASSIGN_OR_RETURN(const Learner::State state, learner.Save());
  RETURN_IF_ERROR(SetAnyOrder(request, learner));
  ASSIGN_OR_RETURN(const double fp32, MedianStep(request, gang.world_size()));
  RETURN_IF_ERROR(learner.SetPrecision(Precision::kBf16));
  ASSIGN_OR_RETURN(const double bf16, MedianStep(request, gang.world_size()));
  RETURN_IF_ERROR(learner.Load(state));
  RETURN_IF_ERROR(learner.TakeLoss().status());
  int64_t faster = fp32 > bf16 * kLeastGain ? 1 : 0;
  if (gang.group() != nullptr) {
    RETURN_IF_ERROR(gang.group()->Broadcast(absl::MakeSpan(&faster, 1)));
  }
  const Precision chosen = faster != 0 ? Precision::kBf16 : Precision::kFp32;
  if (gang.leads() && chosen == Precision::kBf16) {
    Decide(request, sink,
           absl::StrFormat("a step takes %.2f ms in bf16, %.2f ms in fp32", bf16 * 1e3, fp32 * 1e3),
           Precision::kFp32, chosen);
  }
  RETURN_IF_ERROR(learner.SetPrecision(chosen));
  return chosen;
}

}  // namespace

Precision SupportedPrecision(const PrecisionRequest& request, EventSink& sink) {
  const bool gpu = request.compute_capability > 0;
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
  if (request.wanted.has_value() || request.compute_capability > 0) return supported;
  int64_t probe = ProbeWorthIts(request, learner) ? 1 : 0;
  if (gang.group() != nullptr) {
    RETURN_IF_ERROR(gang.group()->Broadcast(absl::MakeSpan(&probe, 1)));
  }
  if (probe == 0) return supported;
  return Probe(request, learner, gang, sink);
}

absl::StatusOr<int> ChooseThreads(const PrecisionRequest& request, int most, Learner& learner,
                                  Gang& gang, EventSink& sink) {
  if (most < 2 || request.compute_capability > 0) return most;
  int64_t probe = HasTimeForProbe(request, learner) ? 1 : 0;
  if (gang.group() != nullptr) {
    RETURN_IF_ERROR(gang.group()->Broadcast(absl::MakeSpan(&probe, 1)));
  }
  if (probe == 0) return most;
  ASSIGN_OR_RETURN(const Learner::State state, learner.Save());
  RETURN_IF_ERROR(SetAnyOrder(request, learner));
  ASSIGN_OR_RETURN(const double many, MedianStep(request, gang.world_size()));
  SetTorchThreads(1);
  ASSIGN_OR_RETURN(const double one, MedianStep(request, gang.world_size()));
  RETURN_IF_ERROR(learner.Load(state));
  RETURN_IF_ERROR(learner.TakeLoss().status());
  int64_t chosen = one > many * kLeastGain ? most : 1;
  if (gang.group() != nullptr) {
    RETURN_IF_ERROR(gang.group()->Broadcast(absl::MakeSpan(&chosen, 1)));
  }
  SetTorchThreads(static_cast<int>(chosen));
  if (gang.leads() && chosen == 1) {
    rank_protocol::Decision decision;
    decision.attempt = request.attempt;
    decision.rule = "threads";
    decision.cause = absl::StrFormat("a step takes %.2f ms with 1 thread, %.2f ms with %d",
                                     one * 1e3, many * 1e3, most);
    decision.from = absl::StrCat(most);
    decision.to = "1";
    sink.Send(decision);
  }
  return static_cast<int>(chosen);
}

}  // namespace traind
