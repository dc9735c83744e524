#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <string>
#include <vector>

#include "client/exit_codes.h"
#include "client/fetch_file.h"
#include "client/fetch_results.h"
#include "client/follow.h"
#include "client/job_array.h"
#include "client/render_table.h"
#include "client/request_id.h"
#include "client/spec_input.h"
#include "client/upload.h"
#include "client/verbs.h"
#include "common/base/duration.h"
#include "common/spec/field_text.h"
#include "common/wire/render_json.h"

namespace traind {
namespace {

std::string Accepted(const v1::SubmitReply& reply, absl::Time now) {
  const v1::Job& job = reply.job();
  std::string text =
      absl::StrFormat("%s %s (%s)", Printable(job.id()), StateText(job.state(), false),
                      reply.created() ? "new" : "known by its request id");
  if (!job.has_deadline()) return text + "  no deadline";
  const absl::Duration left =
      job.has_remaining_s() ? absl::Seconds(job.remaining_s()) : ToTime(job.deadline()) - now;
  return absl::StrFormat("%s  deadline %s (in %s)", text, ClockText(job.deadline(), now),
                         DurationToText(left));
}

}  // namespace

int RunSubmit(const Arguments& arguments, Environment& environment) {
  if (!arguments.arrays.empty()) return SubmitArray(arguments, environment);
  SpecInput input;
  if (!LoadSpec(arguments, environment, "nothing submitted", input)) return kExitUsage;
  const std::string& output = input.read.spec.output();
  if ((arguments.wait || arguments.follow) && !output.empty()) {
    // After the training it would be too late.
    if (const absl::Status status = CheckCanWrite(output); !status.ok()) {
      return ReportRefusal(environment, input,
                           absl::InvalidArgumentError(absl::StrCat("output: ", status.message())),
                           "nothing submitted");
    }
  }
  std::string results_to;  // of what traind keeps
  const bool sends_program = arguments.upload && input.read.spec.has_run();
  if (!arguments.to.empty() && !sends_program) {
    environment.err
        << "trainctl: --out is for the files of a program (`run`) that --upload sends\n";
    return kExitUsage;
  }
  if (sends_program && (arguments.wait || arguments.follow)) {
    results_to = arguments.to.empty() ? input.read.spec.run().folder() : arguments.to;
    if (const absl::Status status = CheckCanFetchTo(results_to); !status.ok()) {
      return ReportRefusal(environment, input, status, "nothing submitted");
    }
  }
  TrainingClient client = MakeClient(arguments, environment);
  if (arguments.upload) {
    const absl::Status sent = UploadFilesOf(input.read.spec, client, environment);
    if (!sent.ok()) return ReportRefusal(environment, input, sent, "nothing submitted");
  }
  v1::SubmitRequest request;
  *request.mutable_spec() = input.read.spec;
  request.set_spec_text(input.text);
  request.set_owner(arguments.owner);
  request.set_request_id(arguments.request_id.empty() ? RandomRequestId() : arguments.request_id);
  environment.hold_interrupts(
      false,
      "interrupted before traind answered; the Job may have been accepted (trainctl list). "
      "The same command with --request-id " +
          Printable(request.request_id(), 200) + " will not make a second one.\n");
  auto reply = client.Submit(request);
  environment.hold_interrupts(false, "");
  if (!reply.ok()) {
    const int exit_code = ReportRefusal(environment, input, reply.status(), "nothing submitted");
    if (!arguments.upload) SuggestUpload(input.read.spec, reply.status(), environment);
    return exit_code;
  }
  for (const std::string& warning : reply->warnings()) {
    environment.err << "warning: " << Printable(warning, 400) << "\n";
  }
  const std::string accepted = Accepted(*reply, environment.clock.WallNow()) + "\n";
  if (arguments.wait || arguments.follow) {
    environment.err << accepted << std::flush;
    return FollowToTheEnd(arguments, environment, client, std::move(*reply->mutable_job()), output,
                          arguments.follow, results_to);
  }
  if (arguments.json) {
    environment.out << ToJson(reply->job()) << "\n";
  } else {
    environment.out << accepted;
    const std::string id = Printable(reply->job().id());
    std::vector<std::string> next = {"watch " + id, "logs " + id + " --follow"};
    if (sends_program) next.push_back("fetch " + id);
    SuggestNext(arguments, environment, next);
  }
  return kExitOk;
}

}  // namespace traind
