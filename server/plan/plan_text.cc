#include "server/plan/plan_text.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <cmath>

#include "server/plan/planner.h"

namespace traind {

std::string Count(int n, absl::string_view noun) {
  return absl::StrCat(n, " ", noun, n == 1 ? "" : "s");
}

std::string RowsText(double rows) { return absl::StrFormat("%.0f %% of the rows", 100 * rows); }

bool Differs(const Plan& plan, const Plan& last, absl::Duration window) {
  constexpr double kShare = 0.05;
  return plan.folds != last.folds || plan.epochs != last.epochs || plan.rows != last.rows ||
         plan.models != last.models || plan.estimate.has_value() != last.estimate.has_value() ||
         absl::AbsDuration(plan.reserve - last.reserve) > kShare * window;
}

std::string Text(absl::Duration duration) {
  const double s = absl::ToDoubleSeconds(duration);
  if (!std::isfinite(s)) return "for ever";
  const double size = std::fabs(s);
  if (size < 1e-3) return absl::StrFormat("%.3g us", s * 1e6);
  if (size < 1) return absl::StrFormat("%.3g ms", s * 1e3);
  if (size < 120) return absl::StrFormat("%.3g s", s);
  const int64_t whole = static_cast<int64_t>(std::llround(s));
  if (whole < 7200) return absl::StrFormat("%d min %d s", whole / 60, whole % 60);
  return absl::StrFormat("%d h %d min", whole / 3600, whole % 3600 / 60);
}

}  // namespace traind
