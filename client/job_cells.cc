#include "client/job_cells.h"

#include <absl/strings/str_format.h>

#include "client/render_table.h"
#include "common/base/duration.h"

namespace traind {

std::string ShortDuration(const google::protobuf::Duration& duration) {
  return DurationToText(absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos()));
}

std::string Seconds(double seconds) {
  return DurationToText(absl::Trunc(absl::Seconds(seconds), absl::Milliseconds(1)));
}

std::string LacksText(const v1::Job& job, absl::Time now) {
  std::string text;
  if (!job.waits_for().empty()) absl::StrAppend(&text, ": ", Printable(job.waits_for()));
  if (job.has_expected_start()) {
    absl::StrAppend(&text, "; expected ", ClockText(job.expected_start(), now));
  }
  return text;
}

std::string RowsText(const v1::Plan& plan) {
  if (plan.row_share() <= 0 || plan.row_share() >= 1) return "";
  return absl::StrFormat(" of %.0f %% of the rows", 100 * plan.row_share());
}

void AddLine(std::string& text, absl::string_view name, absl::string_view value) {
  if (!value.empty()) absl::StrAppendFormat(&text, "  %-11s %s\n", name, value);
}

}  // namespace traind
