#include "client/exit_codes.h"
#include "client/render_table.h"
#include "client/spec_input.h"
#include "client/upload.h"
#include "client/verbs.h"
#include "common/wire/render_json.h"

namespace traind {

int RunPlan(const Arguments& arguments, Environment& environment) {
  SpecInput input;
  if (!LoadSpec(arguments, environment, "nothing planned", input)) return kExitUsage;
  TrainingClient client = MakeClient(arguments, environment);
  if (arguments.upload) {
    const absl::Status sent = UploadFilesOf(input.read.spec, client, environment);
    if (!sent.ok()) return ReportRefusal(environment, input, sent, "nothing planned");
  }
  v1::PlanRequest request;
  *request.mutable_spec() = input.read.spec;
  request.set_owner(arguments.owner);
  const auto reply = client.Plan(request);
  if (!reply.ok()) return ReportRefusal(environment, input, reply.status(), "nothing planned");
  environment.out << (arguments.json ? ToJson(*reply) + "\n"
                                     : PlanReport(*reply, environment.clock.WallNow()));
  return kExitOk;
}

}  // namespace traind
