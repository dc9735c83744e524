#include "common/data/table/series_input.h"

#include <absl/strings/str_format.h>
#include <absl/types/span.h>

#include <cmath>

#include "common/data/table/date_text.h"

namespace traind {
namespace {

int64_t MonthOf(const CalendarTime& time) { return int64_t{12} * time.year + time.month - 1; }

template <typename Between>
double CommonStep(const Table& table, Between&& between) {
  const absl::Span<const double> times = table.Times();
  double step = 0;
  size_t begin = 0;
  for (const uint64_t end : table.SeriesEnds(Split::kTrain)) {
    for (size_t row = begin + 1; row < end; ++row) {
      const double now = between(times[row - 1], times[row]);
      if (step == 0) step = now;
      if (now <= 0 || std::fabs(now - step) > kStepTolerance * step) return 0;
    }
    begin = end;
  }
  return step;
}

}  // namespace

double MonthsBetween(double from, double to) {
  const CalendarTime a = CalendarOf(from), b = CalendarOf(to);
  const bool same = a.day == b.day && a.hour == b.hour && a.minute == b.minute &&
                    std::fmod(from, 60) == std::fmod(to, 60);
  return same ? static_cast<double>(MonthOf(b) - MonthOf(a)) : 0;
}

double TimeStep::After(double time, int64_t steps) const {
  if (unit == Unit::kAmount) return time + static_cast<double>(steps) * amount;
  const CalendarTime from = CalendarOf(time);
  const int64_t month = MonthOf(from) + steps * static_cast<int64_t>(amount);
  double day = 0;
  ParseIsoTime(absl::StrFormat("%04d-%02d-%02dT%02d:%02d", month / 12, month % 12 + 1, from.day,
                               from.hour, from.minute),
               day);
  return day + std::fmod(time, 60);
}

TimeStep StepOf(const Table& table) {
  const double amount = CommonStep(table, [](double from, double to) { return to - from; });
  if (amount > 0) return {TimeStep::Unit::kAmount, amount};
  const double months = CommonStep(table, MonthsBetween);
  // Not every month has the later days.
  constexpr int kLastCommonDay = 28;
  const auto times = table.Times();
  const bool common = !times.empty() && CalendarOf(times[0]).day <= kLastCommonDay;
  return months > 0 && common ? TimeStep{TimeStep::Unit::kMonths, months} : TimeStep();
}

}  // namespace traind
