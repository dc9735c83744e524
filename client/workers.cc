#include "client/exit_codes.h"
#include "client/render_table.h"
#include "client/verbs.h"
#include "common/wire/render_json.h"

namespace traind {

int RunWorkers(const Arguments& arguments, Environment& environment) {
  TrainingClient client = MakeClient(arguments, environment);
  const auto reply = client.ListWorkers();
  if (!reply.ok()) return ReportError(environment, reply.status());
  if (arguments.json) {
    environment.out << ToJsonArray(*reply, "workers") << "\n";
  } else if (reply->workers().empty()) {
    environment.err << "no workers: start trainworker, or traind with --standalone\n";
  } else {
    environment.out << WorkerTable(*reply, environment.clock.WallNow(),
                                   arguments.output == OutputFormat::kWide);
  }
  return kExitOk;
}

}  // namespace traind
