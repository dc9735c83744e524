// delete, pin, unpin and gc.
#include <absl/strings/str_cat.h>

#include "client/exit_codes.h"
#include "client/render_table.h"
#include "client/verbs.h"
#include "common/base/bytes_text.h"
#include "common/spec/field_text.h"
#include "common/wire/render_json.h"

namespace traind {
namespace {

int Pin(const Arguments& arguments, Environment& environment, bool pinned) {
  v1::PinJobRequest request;
  request.set_id(arguments.job);
  request.set_pinned(pinned);
  TrainingClient client = MakeClient(arguments, environment);
  const auto job = client.PinJob(request);
  if (!job.ok()) return ReportError(environment, job.status());
  return PrintJob(arguments, environment, client, *job);
}

}  // namespace

int RunDelete(const Arguments& arguments, Environment& environment) {
  TrainingClient client = MakeClient(arguments, environment);
  const auto deleted = client.DeleteJob(arguments.job);
  if (!deleted.ok()) return ReportError(environment, deleted.status());
  if (arguments.json) {
    environment.out << ToJson(*deleted) << "\n";
  } else {
    environment.out << "deleted " << Printable(deleted->id()) << ", " << BytesText(deleted->bytes())
                    << "\n";
  }
  return kExitOk;
}

int RunPin(const Arguments& arguments, Environment& environment) {
  return Pin(arguments, environment, true);
}

int RunUnpin(const Arguments& arguments, Environment& environment) {
  return Pin(arguments, environment, false);
}

int RunGc(const Arguments& arguments, Environment& environment) {
  TrainingClient client = MakeClient(arguments, environment);
  const auto reply = client.CollectGarbage(arguments.dry_run);
  if (!reply.ok()) return ReportError(environment, reply.status());
  if (arguments.json) {
    environment.out << ToJson(*reply) << "\n";
    return kExitOk;
  }
  TextTable table({"KIND", "NAME", "BYTES", "WHY"});
  for (const v1::GarbageItem& item : reply->items()) {
    table.Add({item.kind(), item.name(), absl::StrCat(item.bytes()), item.why()});
  }
  if (reply->items_size() > 0) environment.out << table.ToString();
  environment.err << (arguments.dry_run ? "would delete " : "deleted ") << reply->items_size()
                  << " items, " << BytesText(reply->bytes()) << "\n";
  return kExitOk;
}

}  // namespace traind
