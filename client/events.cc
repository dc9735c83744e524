#include <absl/strings/str_cat.h>

#include "client/exit_codes.h"
#include "client/render_table.h"
#include "client/verbs.h"
#include "common/spec/field_text.h"
#include "common/wire/render_json.h"

namespace traind {
namespace {

std::string EventLine(const v1::JobEvent& event, absl::Time now) {
  return absl::StrCat(ClockText(event.at(), now), "  ", Printable(event.kind()), "  ",
                      Printable(event.detail()), "\n");
}

}  // namespace

// With --follow, events are printed as they arrive (JSON: one per line), else as one document.
int RunEvents(const Arguments& arguments, Environment& environment) {
  TrainingClient client = MakeClient(arguments, environment);
  const auto job = client.GetJob(arguments.job);
  if (!job.ok()) return ReportError(environment, job.status());
  v1::EventsReply all;
  const absl::Status status = client.GetEvents(
      job->id(), arguments.follow, arguments.timeout.value_or(absl::InfiniteDuration()),
      [&](const v1::EventsReply& reply) {
        for (const v1::JobEvent& event : reply.events()) {
          if (!arguments.follow) {
            *all.add_events() = event;
          } else if (arguments.json) {
            environment.out << ToJsonLine(event) << "\n";
          } else {
            environment.out << EventLine(event, environment.clock.WallNow());
          }
        }
        environment.out.flush();
        return environment.out.good();
      });
  if (!status.ok()) return ReportError(environment, status);
  if (arguments.follow) return kExitOk;
  if (arguments.json) {
    environment.out << ToJsonArray(all, "events") << "\n";
  } else if (!all.events().empty()) {
    TextTable table({"TIME", "EVENT", "DETAIL"});
    for (const v1::JobEvent& event : all.events()) {
      table.Add({ClockText(event.at(), environment.clock.WallNow()), event.kind(), event.detail()});
    }
    environment.out << table.ToString();
  }
  return kExitOk;
}

}  // namespace traind
