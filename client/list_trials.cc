#include <absl/time/time.h>

#include "client/exit_codes.h"
#include "client/trials.h"
#include "client/verbs.h"
#include "common/spec/field_text.h"

namespace traind {

int RunTrials(const Arguments& arguments, Environment& environment) {
  TrainingClient client = MakeClient(arguments, environment);
  const auto job = client.GetJob(arguments.job);
  if (!job.ok()) return ReportError(environment, job.status());
  const double now_s = absl::ToDoubleSeconds(environment.clock.WallNow() - absl::UnixEpoch());
  if (arguments.output == OutputFormat::kCsv) {
    environment.out << TrialCsv(*job, now_s);
  } else if (arguments.json) {
    environment.out << TrialJson(*job, now_s);
  } else {
    if (!HasTrials(*job)) {
      environment.err << Printable(job->id())
                      << " has one setting; a Job with `model: auto` or `search` has several\n";
    }
    environment.out << TrialTable(*job, now_s);
    const std::string search = SearchTable(*job);
    if (!search.empty()) environment.out << "\n" << search;
  }
  return kExitOk;
}

}  // namespace traind
