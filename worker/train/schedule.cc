#include "worker/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace traind {
namespace {

constexpr double kPi = 3.141592653589793;

// Half a cosine from `from` at 0 to `to` at 1.
double Anneal(double from, double to, double done) {
  return to + (from - to) * 0.5 * (1 + std::cos(kPi * done));
}

// Position in the running period, 0-1.
double InPeriod(int64_t t, int64_t period, int64_t growth) {
  while (growth > 1 && t >= period) {
    t -= period;
    period *= growth;
  }
  return static_cast<double>(t % period) / static_cast<double>(period);
}

// Both halves end a step early, as PyTorch counts.
double OneCycle(const Schedule& s, int64_t t, int64_t steps) {
  const double start = s.peak / s.start_divisor;
  const double top = s.rise * static_cast<double>(steps) - 1;
  const double end = static_cast<double>(steps) - 1;
  const double at = static_cast<double>(std::min(t, steps - 1));
  if (at <= top && top > 0) return Anneal(start, s.peak, at / top);
  if (end <= top) return s.peak;
  return Anneal(s.peak, start / s.end_divisor, (at - top) / (end - top));
}

}  // namespace

std::optional<ScheduleKind> ScheduleByName(absl::string_view name) {
  constexpr std::pair<absl::string_view, ScheduleKind> kNames[] = {
      {"cosine", ScheduleKind::kCosine},      {"constant", ScheduleKind::kConstant},
      {"step", ScheduleKind::kStep},          {"cosine_restarts", ScheduleKind::kCosineRestarts},
      {"one_cycle", ScheduleKind::kOneCycle}, {"polynomial", ScheduleKind::kPolynomial}};
  for (const auto& [known, kind] : kNames) {
    if (name == known) return kind;
  }
  return std::nullopt;
}

double Schedule::LearningRate(int64_t step) const {
  if (step < warmup_steps) {
    return peak * static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
  }
  const int64_t t = step - warmup_steps;
  const int64_t steps = std::max<int64_t>(1, total_steps - warmup_steps);
  const double done = std::min(1.0, static_cast<double>(t) / static_cast<double>(steps));
  switch (kind) {
    case ScheduleKind::kConstant:
      return peak;
    case ScheduleKind::kStep:
      return peak * std::pow(gamma, static_cast<double>(t / period));
    case ScheduleKind::kCosine:
      return step >= total_steps ? least : Anneal(peak, least, done);
    case ScheduleKind::kCosineRestarts:
      return Anneal(peak, least, InPeriod(t, period, period_growth));
    case ScheduleKind::kOneCycle:
      return OneCycle(*this, t, steps);
    case ScheduleKind::kPolynomial:
      return least + (peak - least) * std::pow(1 - done, power);
  }
  return peak;
}

Schedule MakeSchedule(const plain::ScheduleSpec& spec, double peak, int64_t steps_per_epoch,
                      int64_t epochs) {
  const auto steps = [](double exact) { return static_cast<int64_t>(std::llround(exact)); };
  const double epoch = static_cast<double>(steps_per_epoch);
  Schedule s;
  s.kind = *ScheduleByName(spec.kind);
  s.peak = peak;
  s.total_steps = steps_per_epoch * epochs;
  if (spec.warmup_steps.has_value()) {
    s.warmup_steps = *spec.warmup_steps;
  } else if (spec.warmup_epochs.has_value()) {
    s.warmup_steps = steps(*spec.warmup_epochs * epoch);
  } else if (spec.warmup_share.has_value()) {
    s.warmup_steps = steps(*spec.warmup_share * static_cast<double>(s.total_steps));
  } else if (s.kind != ScheduleKind::kOneCycle) {
    s.warmup_steps = WarmupSteps(steps_per_epoch);
  }
  s.least = spec.least * peak;
  s.period = std::max<int64_t>(1, steps(spec.period * epoch));
  s.gamma = spec.gamma;
  s.period_growth = spec.period_growth;
  s.power = spec.power;
  s.rise = spec.rise;
  s.start_divisor = spec.start_divisor;
  s.end_divisor = spec.end_divisor;
  return s;
}

int64_t WarmupSteps(int64_t steps_per_epoch) {
  return std::clamp<int64_t>(steps_per_epoch, 1, 100);
}

int64_t DefaultGangBatch(int64_t training_rows) {
  constexpr int64_t kLeast = 32, kMost = 1024, kStepsPerEpoch = 50;
  int64_t batch = kLeast;
  while (batch < kMost && batch * 2 * kStepsPerEpoch <= training_rows) batch *= 2;
  return batch;
}

}  // namespace traind
