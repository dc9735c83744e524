#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include "client/exit_codes.h"
#include "client/render_table.h"
#include "client/verbs.h"
#include "common/base/duration.h"
#include "common/spec/field_text.h"
#include "common/wire/render_json.h"

namespace traind {
namespace {

// Reads --since: a time, or how long ago.
absl::StatusOr<absl::Time> SinceOf(const std::string& text, absl::Time now) {
  if (const auto ago = DurationFromText(text); ago.ok()) return now - *ago;
  const auto at = TimestampFromText(text);
  if (at.ok()) return *at;
  return absl::InvalidArgumentError(
      absl::StrCat("--since ", at.status().message(), ", or 10m for ten minutes ago"));
}

bool FillRequest(const Arguments& arguments, Environment& environment,
                 v1::GetLogsRequest& request) {
  const LogArguments& logs = arguments.logs;
  request.set_worker(logs.worker);
  if (logs.fold) request.set_fold(*logs.fold);
  if (logs.rank) request.set_rank(*logs.rank);
  request.set_level(logs.level);
  request.set_grep(logs.grep);
  request.set_tail(logs.tail);
  request.set_follow(arguments.follow);
  if (logs.since.empty()) return true;
  const auto since = SinceOf(logs.since, environment.clock.WallNow());
  if (!since.ok()) {
    environment.err << "trainctl: " << since.status().message() << "\n";
    return false;
  }
  request.mutable_since()->set_seconds(absl::ToUnixSeconds(*since));
  return true;
}

std::string LineText(const v1::LogLine& line, absl::Time now, bool color) {
  const char* const tint = line.level() == "error"     ? "\x1b[31m"
                           : line.level() == "warning" ? "\x1b[33m"
                                                       : "";
  const bool tinted = color && *tint != '\0';
  const std::string whose =
      line.task().empty() ? "" : absl::StrFormat("%s r%d  ", line.task(), line.rank());
  return absl::StrCat(tinted ? tint : "", line.has_at() ? ClockText(line.at(), now) : "-", "  ",
                      Printable(whose), line.level().substr(0, 1), "  ",
                      Printable(line.text(), 8192), tinted ? "\x1b[0m" : "", "\n");
}

}  // namespace

// JSON has a line for each line of the logs, also without --follow.
int RunLogs(const Arguments& arguments, Environment& environment) {
  TrainingClient client = MakeClient(arguments, environment);
  v1::GetLogsRequest request;
  if (!FillRequest(arguments, environment, request)) return kExitUsage;
  if (!arguments.logs.worker) {
    const auto job = client.GetJob(arguments.job);
    if (!job.ok()) return ReportError(environment, job.status());
    request.set_id(job->id());
  }
  const bool color = UsesColor(arguments, environment);
  bool any = false;
  const absl::Status status = client.GetLogs(
      std::move(request), arguments.timeout.value_or(absl::InfiniteDuration()),
      [&](const v1::LogsReply& reply) {
        for (const v1::LogLine& line : reply.lines()) {
          any = true;
          environment.out << (arguments.json ? ToJsonLine(line) + "\n"
                                             : LineText(line, environment.clock.WallNow(), color));
        }
        environment.out.flush();
        return environment.out.good();
      });
  if (!status.ok()) return ReportError(environment, status);
  if (!any && !arguments.json) environment.err << "there are no such lines\n";
  return kExitOk;
}

}  // namespace traind
