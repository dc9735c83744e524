#include "client/time_left.h"

#include <absl/strings/str_cat.h>
#include <absl/time/time.h>

#include "client/render_table.h"
#include "common/base/duration.h"
#include "common/spec/automatic_rules.h"
#include "common/spec/field_text.h"

namespace traind {
namespace {

absl::Duration WindowOf(const v1::Job& job) { return ToTime(job.deadline()) - ClockStart(job); }

absl::Duration LeftOf(const v1::Job& job) {
  return ToTime(job.deadline()) - ToTime(job.finished_at());
}

// Whether traind would try several kinds of models on such data.
bool CanBeAutomatic(v1::JobSpec spec) {
  spec.clear_model();
  spec.clear_search();
  ChooseModel(spec);
  return spec.model().has_automatic();
}

std::string FurtherJob(const v1::Job& job, const std::string& sets) {
  return absl::StrCat("trainctl submit --from ", Printable(job.id()), sets, " --budget ",
                      DurationToText(WindowOf(job)));
}

}  // namespace

bool EndedEarly(const v1::Job& job) {
  if (job.end_reason() != v1::JOB_END_REASON_COMPLETED || !job.has_deadline() ||
      job.folds().empty() || !job.models_from().empty() || !job.program_results().empty()) {
    return false;
  }
  const int parts = job.quality() == v1::QUALITY_DEGRADED ? 10 : 2;
  return LeftOf(job) >= WindowOf(job) / parts;
}

std::string TimeLeftText(const v1::Job& job, const v1::JobSpec& spec) {
  if (!EndedEarly(job)) return "";
  const std::string left =
      absl::StrCat(DurationToText(LeftOf(job)), " of ", DurationToText(WindowOf(job)));
  if (job.quality() == v1::QUALITY_DEGRADED) {
    return absl::StrCat(left, " were left when no fold could use them any more. A further Job ",
                        "trains what was cut: ", FurtherJob(job, ""));
  }
  // A program trains no further models; these two try other settings by themselves.
  if (spec.model().has_command() || spec.model().has_automatic() || spec.has_search()) return "";
  std::string text = absl::StrCat(left, " were not needed. More models a fold would use them: ",
                                  FurtherJob(job, " --set train.seeds=20"),
                                  "; so would other settings: a spec with ");
  return absl::StrCat(text, CanBeAutomatic(spec) ? "`model: auto` or " : "", "`search`");
}

}  // namespace traind
