#include "client/exit_codes.h"
#include "client/render_table.h"
#include "client/spec_input.h"
#include "client/verbs.h"
#include "common/wire/render_json.h"

namespace traind {

int RunPlan(const Arguments& arguments, Environment& environment) {
  SpecInput input;
  if (!LoadSpec(arguments, environment, "nothing planned", input)) return kExitUsage;
  v1::PlanRequest request;
  *request.mutable_spec() = input.read.spec;
  request.set_owner(arguments.owner);
  TrainingClient client = MakeClient(arguments, environment);
  const auto reply = client.Plan(request);
  if (!reply.ok()) return ReportRefusal(environment, input, reply.status(), "nothing planned");
  environment.out << (arguments.json ? ToJson(*reply) + "\n"
                                     : PlanReport(*reply, environment.clock.WallNow()));
  return kExitOk;
}

}  // namespace traind
