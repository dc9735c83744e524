#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <tuple>
#include <vector>

#include "client/exit_codes.h"
#include "client/fetch_results.h"
#include "client/follow.h"
#include "client/request_id.h"
#include "client/spec_input.h"
#include "client/upload.h"
#include "client/verbs.h"
#include "common/spec/field_text.h"
#include "common/spec/spec_rules.h"
#include "common/wire/render_json.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

// These variables decide which interpreter and modules a command finds. Others, which may be
// secret, do not travel; --env adds them. None of them travels with --upload, because they name
// folders of this machine.
constexpr const char* kTravels[] = {"PATH",
                                    "HOME",
                                    "LANG",
                                    "VIRTUAL_ENV",
                                    "PYTHONPATH",
                                    "CONDA_PREFIX",
                                    "R_LIBS_USER",
                                    "LD_LIBRARY_PATH",
                                    "CONDA_DEFAULT_ENV"};

absl::Status SetEnvironment(const RunArguments& asked, bool same_machine, v1::RunSpec& run) {
  auto& environment = *run.mutable_environment();
  for (const char* name : kTravels) {
    const char* value = same_machine ? getenv(name) : nullptr;
    if (value != nullptr) environment[name] = value;
  }
  for (const std::string& variable : asked.environment) {
    const size_t sign = variable.find('=');
    if (sign == std::string::npos || sign == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--env ", Printable(variable), " is not NAME=VALUE"));
    }
    environment[variable.substr(0, sign)] = variable.substr(sign + 1);
  }
  return absl::OkStatus();
}

// A name for people: that of the script, or of the program.
std::string NameOf(const std::vector<std::string>& command) {
  std::string chosen = command[0];
  for (const std::string& word : command) {
    const std::string extension = fs::path(word).extension();
    if (extension == ".py" || extension == ".sh" || extension == ".R") {
      chosen = word;
      break;
    }
  }
  std::string name;
  for (const char c : fs::path(chosen).stem().string()) {
    if (absl::ascii_isalnum(c) || (!name.empty() && (c == '-' || c == '_'))) name.push_back(c);
  }
  return name.empty() ? "run" : name.substr(0, 40);
}

// The folder on this machine to which the results go.
std::string ResultsFolder(const Arguments& arguments, const fs::path& here) {
  return arguments.to.empty() ? here.string() : (here / arguments.to).lexically_normal().string();
}

absl::StatusOr<v1::JobSpec> SpecOf(const Arguments& arguments) {
  const RunArguments& asked = arguments.run;
  v1::JobSpec spec;
  spec.set_name(arguments.name.value_or(NameOf(asked.command)));
  v1::RunSpec& run = *spec.mutable_run();
  for (const std::string& word : asked.command) run.add_command(word);
  std::error_code error;
  const fs::path here = fs::current_path(error);
  if (error) return absl::NotFoundError("the current folder is gone");
  run.set_folder(here.string());
  if (!arguments.upload) run.set_results(ResultsFolder(arguments, here));
  for (const std::string& name : asked.expect) run.add_expect(name);
  for (const std::string& name : asked.checkpoints) run.add_checkpoints(name);
  if (!asked.sample.empty()) {
    run.set_sample_submission((here / asked.sample).lexically_normal().string());
  }
  if (asked.offline) run.set_network("off");
  run.set_folds(asked.folds);
  run.set_epochs(asked.epochs);
  run.set_seed(asked.seed);
  if (asked.slots > 0) spec.mutable_resources()->set_slots(asked.slots);
  const absl::Status environment = SetEnvironment(asked, !arguments.upload, run);
  if (!environment.ok()) return environment;
  for (const std::string& job : arguments.after) spec.mutable_after()->add_jobs(job);
  for (const std::string& label : arguments.labels) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(label, absl::MaxSplits('=', 1));
    (*spec.mutable_labels())[parts.first] = parts.second;
  }
  return spec;
}

}  // namespace

int RunProgramVerb(const Arguments& arguments, Environment& environment) {
  absl::StatusOr<v1::JobSpec> spec = SpecOf(arguments);
  if (!spec.ok()) return ReportError(environment, spec.status());
  for (const auto& [flag, field, value] :
       {std::make_tuple("--budget", "time", arguments.budget),
        std::make_tuple("--deadline", "deadline", arguments.deadline)}) {
    if (!value) continue;
    if (!ReadBudgetField(environment, flag, field, *value, *spec->mutable_budget())) {
      return kExitUsage;
    }
  }
  SpecInput input;
  input.read.spec = *spec;
  const std::vector<SpecError> mistakes = CheckSpec(*spec);
  for (const SpecError& mistake : mistakes) {
    environment.err << "trainctl: " << Printable(mistake.message, 400) << "\n";
  }
  if (!mistakes.empty()) return kExitUsage;
  TrainingClient client = MakeClient(arguments, environment);
  std::string results_to;  // of what traind keeps
  if (arguments.upload) {
    if (!arguments.run.detach) {
      results_to = ResultsFolder(arguments, spec->run().folder());
      // After the training it would be too late.
      const absl::Status writable = CheckCanFetchTo(results_to);
      if (!writable.ok()) return ReportError(environment, writable);
    }
    const absl::Status sent = UploadFilesOf(*spec, client, environment);
    if (!sent.ok()) return ReportRefusal(environment, input, sent, "nothing submitted");
  }
  v1::SubmitRequest request;
  *request.mutable_spec() = *spec;
  request.set_owner(arguments.owner);
  request.set_request_id(arguments.request_id.empty() ? RandomRequestId() : arguments.request_id);
  auto reply = client.Submit(request);
  if (!reply.ok()) {
    const int exit_code = ReportRefusal(environment, input, reply.status(), "nothing submitted");
    if (!arguments.upload) SuggestUpload(*spec, reply.status(), environment);
    return exit_code;
  }
  const std::string id = Printable(reply->job().id());
  if (arguments.run.detach) {
    if (arguments.json) {
      environment.out << ToJson(reply->job()) << "\n";
    } else {
      environment.out << id << "\n";
      std::vector<std::string> next = {"watch " + id, "logs " + id + " --follow"};
      if (arguments.upload) next.push_back("fetch " + id);
      SuggestNext(arguments, environment, next);
    }
    return kExitOk;
  }
  environment.err << id << " accepted\n" << std::flush;
  return FollowToTheEnd(arguments, environment, client, std::move(*reply->mutable_job()), "",
                        /*show_progress=*/true, results_to);
}

}  // namespace traind
