#include "client/verbs.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include "client/exit_codes.h"
#include "client/time_left.h"
#include "common/spec/field_text.h"
#include "common/wire/render_json.h"

namespace traind {

TrainingClient MakeClient(const Arguments& arguments, Environment& environment) {
  TrainingClient::Options options;
  options.server = arguments.server;
  options.tls_dir = arguments.tls_dir;
  options.token_file = arguments.token_file;
  if (arguments.timeout) {
    options.call = *arguments.timeout;
    options.connect = std::min(options.connect, options.call);
  }
  return TrainingClient(options, environment.clock);
}

bool UsesColor(const Arguments& arguments, const Environment& environment) {
  if (arguments.color != ColorMode::kAuto) return arguments.color == ColorMode::kAlways;
  return environment.out_is_terminal && environment.color_wished;
}

int ReportError(Environment& environment, const absl::Status& status) {
  // A message of several lines keeps its lines; other control characters are escaped.
  for (absl::string_view line : absl::StrSplit(status.message(), '\n')) {
    environment.err << "trainctl: " << Printable(line, 2000) << "\n";
  }
  const bool speaks_http = absl::StrContains(status.message(), "http1.x server") ||
                           absl::StrContains(status.message(), "Failed parsing HTTP/2") ||
                           absl::StrContains(status.message(), "Received http2 header with status");
  if (speaks_http) {
    environment.err << "The server there speaks HTTP. trainctl needs the address that the ready "
                       "line of traind names as grpc=HOST:PORT (by default 127.0.0.1:7070)\n";
  } else if (absl::IsUnavailable(status)) {
    environment.err << "Is traind running? Start it with: traind --standalone --state DIR; or name "
                       "another with --server HOST:PORT or $TRAINCTL_SERVER\n";
  } else if (absl::IsNotFound(status)) {
    environment.err << "To see the Jobs: trainctl list\n";
  }
  return ExitCodeOf(status);
}

void SuggestNext(const Arguments& arguments, Environment& environment,
                 const std::vector<std::string>& commands) {
  if (arguments.json || arguments.quiet) return;
  for (const std::string& command : commands) {
    environment.err << (&command == &commands.front() ? "  next: " : "        ") << "trainctl "
                    << arguments.reach << command << "\n";
  }
}

JobStyle StyleOf(const Arguments& arguments, const Environment& environment, TrainingClient& client,
                 const v1::Job& job) {
  JobStyle style;
  style.color = UsesColor(arguments, environment);
  style.verbose = arguments.verbose;
  if (!EndedEarly(job)) return style;
  auto spec = client.GetSpec(job.id());
  if (spec.ok()) style.spec = std::move(*spec->mutable_resolved());
  return style;
}

int PrintJob(const Arguments& arguments, Environment& environment, TrainingClient& client,
             const v1::Job& job) {
  environment.out << (arguments.json ? ToJson(job) + "\n"
                                     : JobReport(job, environment.clock.WallNow(),
                                                 StyleOf(arguments, environment, client, job)));
  return kExitOk;
}

bool ReadBudgetField(Environment& environment, const char* flag, const char* field,
                     const std::string& text, v1::BudgetSpec& budget) {
  ScalarText scalar;
  scalar.text = text;
  scalar.now = environment.clock.WallNow();
  const absl::Status status =
      SetFieldFromText(*v1::BudgetSpec::descriptor()->FindFieldByName(field), scalar, budget);
  if (!status.ok()) environment.err << "trainctl: " << flag << " " << status.message() << "\n";
  return status.ok();
}

bool SplitLabel(Environment& environment, const std::string& text, std::string& key,
                std::string& value) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    environment.err << "trainctl: '" << Printable(text)
                    << "' is not a label; write it like team=blue\n";
    return false;
  }
  key = text.substr(0, equals);
  value = text.substr(equals + 1);
  return true;
}

}  // namespace traind
