#include "server/plan/plan_text.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <cmath>

#include "server/plan/planner.h"

namespace traind {

std::string Count(int n, absl::string_view noun) {
  return absl::StrCat(n, " ", noun, n == 1 ? "" : "s");
}

std::string RowsText(double row_share) {
  return absl::StrFormat("%.0f %% of the rows", 100 * row_share);
}

bool Differs(const Plan& plan, const Plan& last) {
  if (plan.folds != last.folds || plan.epochs != last.epochs || plan.row_share != last.row_share ||
      plan.models != last.models) {
    return true;
  }
  if (plan.estimate.has_value() != last.estimate.has_value()) return true;
  const auto differs = [](absl::Duration a, absl::Duration b) {
    const absl::Duration change = a > b ? a - b : b - a;
    return change > 0.2 * b && change > absl::Milliseconds(100);
  };
  if (plan.estimate && differs(*plan.estimate, *last.estimate)) return true;
  return differs(plan.reserve, last.reserve);
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
