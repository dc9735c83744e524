#include "common/data/table/time_warnings.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <cmath>

#include "common/data/table/date_text.h"

namespace traind {
namespace {

constexpr double kDay = 86'400;

bool IsLastOfMonth(double time) { return CalendarOf(time + kDay).day == 1; }

// As MonthsBetween; the last days of two months are whole months apart, too.
double MonthsApart(double from, double to) {
  const double shift = IsLastOfMonth(from) && IsLastOfMonth(to) ? kDay : 0;
  return MonthsBetween(from + shift, to + shift);
}

bool IsStep(const TimeStep& step, double from, double to) {
  if (step.unit == TimeStep::Unit::kMonths) return MonthsApart(from, to) == step.amount;
  return std::fabs(to - from - step.amount) <= kStepTolerance * step.amount;
}

// Calls visit(from, to, row) for each row that has one before it in its series.
template <typename Visit>
void ForEachStep(const OrderedTimes& rows, Visit&& visit) {
  size_t begin = 0;
  for (size_t s = 0; s < rows.ends.size(); ++s) {
    const auto end = static_cast<size_t>(rows.ends[s]);
    for (size_t row = begin; row < end; ++row) {
      if (row > begin) {
        visit(rows.times[row - 1], rows.times[row], row);
      } else if (s < rows.before.size() && !std::isnan(rows.before[s])) {
        visit(rows.before[s], rows.times[row], row);
      }
    }
    begin = end;
  }
}

struct Common {
  double step = 0;
  size_t count = 0;
};

// The most frequent step; of equally frequent ones the shortest.
Common MostCommon(std::vector<double> steps) {
  std::sort(steps.begin(), steps.end());
  Common common;
  for (size_t begin = 0, end = 0; begin < steps.size(); begin = end) {
    while (end < steps.size() && steps[end] - steps[begin] <= kStepTolerance * steps[begin]) ++end;
    if (end - begin > common.count) common = {steps[begin], end - begin};
  }
  return common;
}

std::string Amount(double count, absl::string_view unit) {
  return absl::StrFormat("%.15g %s%s", count, unit, count == 1 ? "" : "s");
}

std::string StepText(const TimeStep& step, bool dates) {
  if (step.unit == TimeStep::Unit::kMonths) {
    return std::fmod(step.amount, 12) == 0 ? Amount(step.amount / 12, "year")
                                           : Amount(step.amount, "month");
  }
  if (!dates) return absl::StrFormat("%.15g", step.amount);
  struct Unit {
    double seconds;
    absl::string_view name;
  };
  for (const Unit& unit : {Unit{kDay, "day"}, Unit{3'600, "hour"}, Unit{60, "minute"}}) {
    if (std::fmod(step.amount, unit.seconds) == 0) {
      return Amount(step.amount / unit.seconds, unit.name);
    }
  }
  return Amount(step.amount, "second");
}

std::string Told(absl::string_view text) { return absl::StrCat("'", text, "'"); }

}  // namespace

TimeStep UsualStep(const OrderedTimes& rows) {
  std::vector<double> steps, months;
  ForEachStep(rows, [&](double from, double to, size_t) { steps.push_back(to - from); });
  const Common amount = MostCommon(steps);
  Common month;
  if (rows.dates && amount.count < steps.size()) {
    ForEachStep(rows, [&](double from, double to, size_t) {
      const double between = MonthsApart(from, to);
      if (between > 0) months.push_back(between);
    });
    month = MostCommon(months);
  }
  const bool by_months = month.count > amount.count;
  const Common& usual = by_months ? month : amount;
  if (usual.count < 2 || 2 * usual.count < steps.size()) return {};
  return {by_months ? TimeStep::Unit::kMonths : TimeStep::Unit::kAmount, usual.step};
}

void WarnOfSteps(const OrderedTimes& rows, const TimeStep& usual, absl::string_view usual_file,
                 std::vector<std::string>& warnings) {
  constexpr char kMeaning[] = "; forecasts count rows, not time";
  size_t steps = 0, others = 0, first = 0;
  double shortest = INFINITY, longest = 0;
  ForEachStep(rows, [&](double from, double to, size_t row) {
    ++steps;
    shortest = std::min(shortest, to - from);
    longest = std::max(longest, to - from);
    if (usual.unit == TimeStep::Unit::kNone || IsStep(usual, from, to)) return;
    if (++others == 1) first = row;
  });
  const std::string begin = absl::StrCat(rows.file, ": column '", rows.column, "': ");
  if (others > 0) {
    warnings.push_back(absl::StrCat(begin, others, " of ", steps, steps == 1 ? " step " : " steps ",
                                    others == 1 ? "differs" : "differ", " from the usual one of ",
                                    StepText(usual, rows.dates),
                                    usual_file == rows.file ? "" : absl::StrCat(" in ", usual_file),
                                    ", first that to row ", rows.rows[first] + 1, kMeaning));
  } else if (usual.unit == TimeStep::Unit::kNone && usual_file == rows.file && steps > 1 &&
             longest - shortest > kStepTolerance * longest) {
    const auto text = [&](double amount) {
      return StepText({TimeStep::Unit::kAmount, amount}, rows.dates);
    };
    warnings.push_back(absl::StrCat(begin, "its steps are not alike, from ", text(shortest), " to ",
                                    text(longest), kMeaning));
  }
}

void WarnOfZones(absl::string_view file, absl::string_view column, const TimeColumn& times,
                 const TimeColumn* train, std::vector<std::string>& warnings) {
  const BadValue& with = times.with_zone();
  const BadValue& without = times.without_zone();
  const std::string begin = absl::StrCat(file, ": column '", column, "': ");
  if (with.row > 0 && without.row > 0) {
    warnings.push_back(absl::StrCat(
        begin, "times without a zone, such as ", Told(without.text), " (row ", without.row,
        "), count as UTC; others have one, such as ", Told(with.text), " (row ", with.row, ")"));
    return;
  }
  if (train == nullptr || train->with_zone().row * train->without_zone().row > 0) return;
  const bool train_has = train->with_zone().row > 0;
  const BadValue& here = train_has ? without : with;
  const BadValue& there = train_has ? train->with_zone() : train->without_zone();
  if (here.row == 0 || there.row == 0) return;
  warnings.push_back(absl::StrCat(
      begin, "times ", train_has ? "without" : "with", " a zone, such as ", Told(here.text),
      ", while the training file has ", Told(there.text), "; without a zone they count as UTC"));
}

}  // namespace traind
