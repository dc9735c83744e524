#include "client/cli.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "client/arguments.h"
#include "client/command_table.h"
#include "client/command_text.h"
#include "client/contexts.h"
#include "client/exit_codes.h"
#include "client/formats.h"
#include "client/job_array.h"
#include "client/verbs.h"
#include "common/base/duration.h"
#include "common/base/host_port.h"
#include "common/base/suggest.h"
#include "common/spec/field_text.h"

namespace traind {
namespace {

int Misuse(Environment& environment, const std::string& message, const std::string& verb) {
  environment.err << "trainctl: " << message << "\nFor help: trainctl "
                  << (verb.empty() ? "" : verb + " ") << "--help\n";
  return kExitUsage;
}

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// Words of other programs for what trainctl calls otherwise.
constexpr std::pair<const char*, const char*> kElsewhere[] = {
    {"--addr", "--server"}, {"--address", "--server"}, {"--endpoint", "--server"},
    {"--host", "--server"}, {"--url", "--server"},     {"--time", "--budget"},
    {"describe", "get"},    {"download", "fetch"},     {"follow", "watch"},
    {"jobs", "list"},       {"kill", "cancel"},        {"ls", "list"},
    {"nodes", "workers"},   {"rm", "delete"},          {"show", "get"},
    {"start", "submit"},    {"status", "get"},         {"stop", "finish"},
    {"tail", "watch"},      {"train", "submit"},
};

std::string Suggest(const std::string& word, const std::vector<std::string>& candidates) {
  for (const auto& [elsewhere, here] : kElsewhere) {
    if (word != elsewhere) continue;
    if (std::count(candidates.begin(), candidates.end(), here) == 0) continue;
    return absl::StrCat("; did you mean '", here, "'?");
  }
  return DidYouMean(word, candidates);
}

// Explains the first word that no option or verb accepts.
std::string UnknownWord(const CLI::App& app, const CLI::App* verb, const std::string& word) {
  if (absl::StartsWith(word, "-")) {
    std::vector<std::string> names = OptionNames(app);
    if (verb != nullptr) {
      for (std::string& name : OptionNames(*verb)) names.push_back(std::move(name));
    }
    const std::string flag = word.substr(0, word.find('='));
    return absl::StrCat("unknown option ", Printable(flag), Suggest(flag, names));
  }
  if (verb != nullptr) return absl::StrCat("unexpected word '", Printable(word), "'");
  std::vector<std::string> verbs;
  for (const Verb& known : Verbs()) verbs.push_back(known.name);
  return absl::StrCat("there is no verb '", Printable(word), "'", Suggest(word, verbs));
}

// ---- Checks that the parser cannot make; each returns "" if all is well -----

std::string CompleteFormat(const Verb& known, RawArguments& raw) {
  Arguments& arguments = raw.arguments;
  arguments.output = OutputFormatOf(raw.output);
  const OutputFormat format = arguments.output;
  const bool list = format == OutputFormat::kWide || format == OutputFormat::kJsonLines ||
                    format == OutputFormat::kCsv;
  if (list && known.prints != Prints::kList) {
    return absl::StrCat(known.name, " prints no list; -o ", raw.output, " is for lists");
  }
  if (format != OutputFormat::kTable && known.prints == Prints::kText) {
    return absl::StrCat(known.name, " prints text; it has no -o ", raw.output);
  }
  arguments.json = format != OutputFormat::kTable && format != OutputFormat::kWide;
  return "";
}

std::string CompleteCommon(const Verb& known, RawArguments& raw) {
  Arguments& arguments = raw.arguments;
  arguments.verb = known.name;
  arguments.progress = !raw.no_progress && !arguments.quiet;
  arguments.color = raw.color == "always"  ? ColorMode::kAlways
                    : raw.color == "never" ? ColorMode::kNever
                                           : ColorMode::kAuto;
  if (!raw.timeout.empty()) {
    const auto timeout = DurationFromText(raw.timeout);
    if (!timeout.ok()) return absl::StrCat("--timeout ", timeout.status().message());
    arguments.timeout = *timeout;
  }
  if (const absl::Status server = CheckHostPorts(arguments.server, 1); !server.ok()) {
    return absl::StrCat("--server ", server.message());
  }
  return CompleteFormat(known, raw);
}

std::string CompletePredict(const CLI::App& verb, RawArguments& raw) {
  Arguments& arguments = raw.arguments;
  if (verb.count("--name") > 0) arguments.name = raw.name;
  if (arguments.data.empty() == arguments.rows.empty()) {
    return "predict needs either --data FILE or --rows FILE";
  }
  if (arguments.rows.empty() && !arguments.files_column.empty()) {
    return "--files needs --rows; a table given to --data names its files itself";
  }
  return "";
}

std::string CompleteRun(const CLI::App& verb, RawArguments& raw) {
  if (raw.arguments.run.command.empty()) return "run needs a command: run --budget 30s -- COMMAND";
  if (verb.count("--name") > 0) raw.arguments.name = raw.name;
  return "";
}

std::string CompleteSpec(const CLI::App& verb, RawArguments& raw) {
  Arguments& arguments = raw.arguments;
  if (verb.count("--from") > 0) arguments.from = raw.from;
  if (verb.count("--cache") > 0) arguments.cache = raw.cache;
  if (raw.force_retrain) {
    if (arguments.cache && *arguments.cache != "refresh") {
      return "--force-retrain contradicts --cache " + *arguments.cache;
    }
    arguments.cache = "refresh";
  }
  if (arguments.file.empty() && !arguments.from) {
    return arguments.verb + " needs -f FILE, or --from JOB";
  }
  if (verb.count("--name") > 0) arguments.name = raw.name;
  if (verb.count("--preset") > 0) arguments.preset = raw.preset;
  if (arguments.at_once) {
    if (arguments.arrays.empty()) return "--at-once needs --array";
    if (*arguments.at_once < 1) return "--at-once is less than 1";
    if (!arguments.after.empty()) return std::string("--after ") + kNotWithLanes;
  }
  if (!arguments.arrays.empty()) {
    if (arguments.wait || arguments.follow) return "--array submits only; then: wait --array ID";
    if (arguments.file == "-") return "--array needs a file, as it reads the spec for each Job";
  }
  return "";
}

// The words that stand behind the verb.
std::string CompleteWords(const Verb& known, RawArguments& raw) {
  Arguments& arguments = raw.arguments;
  arguments.jobs = raw.jobs;
  const std::string name = known.name;
  if (name == "diff") return raw.jobs.size() == 2 ? "" : "diff needs two Jobs: ids or names";
  if (!arguments.array.empty() && (!arguments.job.empty() || !raw.jobs.empty())) {
    return absl::StrCat(name, " takes JOBs or --array, not both");
  }
  const bool needs_job = arguments.array.empty() && !known.takes.empty();
  if (needs_job && known.takes[0] == "JOB" && arguments.job.empty()) {
    return absl::StrCat(name, " needs a JOB: an id or a name");
  }
  if (needs_job && known.takes[0] == "JOB..." && raw.jobs.empty()) {
    return absl::StrCat(name, " needs JOBs: ids or names");
  }
  if (arguments.request_id.size() > 128) return "--request-id has more than 128 characters";
  if (arguments.all && arguments.any) return "--all contradicts --any";
  if (name == "validate" && arguments.file.empty()) return "validate needs a FILE, or -";
  if (name == "init" && arguments.init.data.empty()) return "init needs DATA: a file or a folder";
  if (name == "completion" && arguments.shell.empty()) return "completion needs bash, zsh or fish";
  if (name == "logs" && arguments.job.empty() != arguments.logs.worker) {
    return arguments.logs.worker ? "logs takes a JOB or --worker, not both"
                                 : "logs needs a JOB, or --worker";
  }
  if (arguments.plot && (arguments.follow || arguments.json)) {
    return "--plot draws the figures that there are, without --follow and -o json";
  }
  return "";
}

std::string Complete(const CLI::App& verb, const Verb& known, RawArguments& raw) {
  Arguments& arguments = raw.arguments;
  std::string wrong = CompleteCommon(known, raw);
  if (wrong.empty()) wrong = CompleteWords(known, raw);
  const std::string name = known.name;
  if (!wrong.empty() || (name != "submit" && name != "plan" && name != "update" &&
                         name != "predict" && name != "run")) {
    return wrong;
  }
  if (verb.count("--budget") > 0) arguments.budget = raw.budget;
  if (verb.count("--deadline") > 0) arguments.deadline = raw.deadline;
  if (name == "run") return CompleteRun(verb, raw);
  if (name == "predict") return CompletePredict(verb, raw);
  if (name != "update") return CompleteSpec(verb, raw);
  const bool nothing = !arguments.budget && !arguments.deadline && !arguments.priority &&
                       arguments.labels.empty() && arguments.unlabels.empty();
  return nothing ? "update needs --budget, --deadline, --priority, --label or --unlabel" : "";
}

// Takes what stands behind -- as the command of `run`, in which all words and flags are its own.
std::vector<std::string> TakeCommand(const std::vector<std::string>& args,
                                     std::vector<std::string>& command) {
  const auto mark = std::find(args.begin(), args.end(), "--");
  if (mark == args.end() || std::find(args.begin(), mark, "run") == mark) return args;
  command.assign(mark + 1, args.end());
  return {args.begin(), mark};
}

// CLI11 wants the arguments in reverse order.
std::vector<std::string> Reversed(std::vector<std::string> args) {
  std::reverse(args.begin(), args.end());
  return args;
}

// Runs a verb that writes a JSON document, and writes that in the form that was asked for.
int RunAndConvert(const Verb& known, const Arguments& arguments, Environment& environment) {
  std::ostringstream text;
  Environment captured = environment.WithOut(text);
  const int exit_code = known.run(arguments, captured);
  if (text.str().empty()) return exit_code;
  const auto document = FormatDocument(text.str(), arguments.output);
  if (!document.ok()) return ReportError(environment, document.status());
  environment.out << *document;
  return exit_code;
}

int RunVerb(const Verb& known, const Arguments& arguments, Environment& environment) {
  const OutputFormat format = arguments.output;
  const bool convert = format == OutputFormat::kYaml || format == OutputFormat::kJsonLines ||
                       format == OutputFormat::kCsv || format == OutputFormat::kName;
  const bool only_lines = known.json_lines == JsonLines::kAlways ||
                          (known.json_lines == JsonLines::kFollowing && arguments.follow);
  const bool own_lines = only_lines || known.json_lines == JsonLines::kAlso;
  if (!convert || (known.writes_csv && format == OutputFormat::kCsv) ||
      (own_lines && format == OutputFormat::kJsonLines)) {
    return known.run(arguments, environment);
  }
  if (only_lines) {
    return Misuse(environment, arguments.verb + " writes lines of JSON: -o jsonl", arguments.verb);
  }
  return RunAndConvert(known, arguments, environment);
}

// `help`, `help VERB` and `--version` are what many programs take for `--help`, `VERB --help` and
// `version`; and `job VERB` for the verb, where things have names in front.
std::vector<std::string> UsualForms(const std::vector<std::string>& args) {
  if (args.size() >= 2 && (args[0] == "job" || args[0] == "jobs")) {
    return {args.begin() + 1, args.end()};
  }
  if (args == std::vector<std::string>{"--version"}) return {"version"};
  if (args.empty() || args[0] != "help" || args.size() > 2) return args;
  if (args.size() == 1) return {"--help"};
  const auto named = [&](const Verb& verb) { return args[1] == verb.name; };
  // Without --help an unknown verb is refused.
  if (std::none_of(Verbs().begin(), Verbs().end(), named)) return {args[1]};
  return {args[1], "--help"};
}

}  // namespace

int RunTrainctl(const std::vector<std::string>& given, Environment& environment) {
  if (!given.empty() && given[0] == "__complete") return RunComplete(given, environment);
  const std::vector<std::string> args = UsualForms(given);
  CommandTable table;
  RawArguments& raw = table.raw();
  CLI::App& app = table.app();
  try {
    app.parse(Reversed(TakeCommand(args, raw.arguments.run.command)));
  } catch (const CLI::CallForHelp&) {
    environment.out << app.help() << std::flush;
    return kExitOk;
  } catch (const CLI::ParseError& error) {
    const auto chosen = app.get_subcommands();
    const std::string verb = chosen.empty() ? "" : chosen[0]->get_name();
    std::string message = Printable(error.what(), 400);
    if (verb == "submit" && absl::StartsWith(message, "--output:")) {
      absl::StrAppend(&message, "; --set output=FILE names the file for predictions");
    }
    return Misuse(environment, message, verb);
  }
  const auto chosen = app.get_subcommands();
  const CLI::App* verb = chosen.empty() ? nullptr : chosen[0];
  const std::string named = verb == nullptr ? "" : verb->get_name();
  const std::vector<std::string> unknown = app.remaining(true);
  if (!unknown.empty()) return Misuse(environment, UnknownWord(app, verb, unknown[0]), named);
  if (verb == nullptr) {
    environment.err << app.help();
    return kExitUsage;
  }
  const Verb& known = table.VerbOf(*verb);
  if (!raw.arguments.server.empty()) {
    raw.arguments.reach = absl::StrCat("--server ", raw.arguments.server, " ");
  } else if (!raw.context.empty()) {
    raw.arguments.reach = absl::StrCat("--context ", raw.context, " ");
  }
  const absl::Status context =
      ApplyContext(environment, known.name, raw.context, raw.arguments.server, raw.output);
  if (!context.ok()) return Misuse(environment, std::string(context.message()), named);
  const std::string wrong = Complete(*verb, known, raw);
  if (!wrong.empty()) return Misuse(environment, wrong, named);
  const int exit_code = RunVerb(known, raw.arguments, environment);
  environment.out.flush();
  return exit_code == kExitOk && !environment.out ? kExitError : exit_code;
}

}  // namespace traind
