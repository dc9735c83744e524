#include "client/cli.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "client/arguments.h"
#include "client/exit_codes.h"
#include "client/verbs.h"
#include "common/base/duration.h"
#include "common/base/host_port.h"
#include "common/base/suggest.h"
#include "common/spec/field_text.h"

namespace traind {
namespace {

constexpr char kFooter[] = R"(
Exit codes: 0 success; 1 error, or the Job FAILED; 2 wrong command line or spec; 3 the time of
--timeout has passed; 4 permission denied; 5 no such Job or file; 6 the request id belongs to
another spec; 7 traind cannot be reached; 9 the Job was cancelled; 130 Ctrl-C (the Job goes on).
Durations are written 90s, 15m, 1h30m, 2d or HH:MM:SS. docs/SPEC.md describes the spec.)";

// The parser's output, which is then checked and turned into Arguments.
struct Raw {
  Arguments arguments;
  std::string output = "table";
  std::string color = "auto";
  std::string timeout;
  bool no_progress = false;
  std::string budget, deadline, name, preset, cache, from;
  bool force_retrain = false;
};

struct Verb {
  const char* name;
  const char* about;
  int (*run)(const Arguments&, Environment&);
  bool takes_job;
};

constexpr Verb kVerbs[] = {
    {"submit", "Submit a Job", RunSubmit, false},
    {"plan", "Show what would fit the budget and what would be cut; submits nothing", RunPlan,
     false},
    {"predict", "Predict a file, or rows at once, with the models of a Job", RunPredict, true},
    {"list", "List Jobs, the newest first", RunList, false},
    {"get", "Show a Job", RunGet, true},
    {"watch", "Follow a Job to its end; Ctrl-C detaches", RunWatch, true},
    {"trials", "List the settings that a Job tries: folds, score, weight, seconds; -o csv, too",
     RunTrials, true},
    {"metrics", "Print the training figures of a Job", RunMetrics, true},
    {"events", "Print what happened to a Job", RunEvents, true},
    {"finish", "Stop training now and predict with the models that exist", RunFinish, true},
    {"pause", "Free the slots until resume; the clock goes on", RunPause, true},
    {"resume", "Continue a paused Job", RunResume, true},
    {"update", "Change a live Job's time, priority or labels", RunUpdate, true},
    {"cancel", "Stop a Job; predictions made so far stay", RunCancel, true},
    {"delete", "Delete a Job that is over, with its files and records", RunDelete, true},
    {"pin", "Keep a Job: retention does not delete it", RunPin, true},
    {"unpin", "Let retention delete a Job again", RunUnpin, true},
    {"gc", "Delete now what retention lets go; --dry-run lists it", RunGc, false},
    {"fetch", "Copy a file of a Job: predictions.csv, manifest.json or report.json", RunFetch,
     true},
    {"workers", "List the Workers and what their slots do", RunWorkers, false},
    {"quota", "List, set or remove quotas of owners and labels: set local 45h per 7d", RunQuota,
     false},
    {"version", "Print the version", RunVersion, false},
};

// Each occurrence of the option takes one value; the next word does not belong to it.
void AddRepeated(CLI::App& app, const std::string& names, std::vector<std::string>& into,
                 const std::string& about) {
  app.add_option(names, into, about)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void AddOption(CLI::App& app, const std::string& names, std::string& into,
               const std::string& about) {
  app.add_option(names, into, about)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void AddCommon(CLI::App& app, Raw& raw) {
  AddOption(app, "--server", raw.arguments.server, "HOST:PORT of traind, or $TRAINCTL_SERVER");
  app.add_option("-o,--output", raw.output, "table or json; for trials also csv")
      ->check(CLI::IsMember({"table", "json", "csv"}))
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_flag("--no-progress", raw.no_progress, "Print no progress bars and lines");
  app.add_option("--color", raw.color,
                 "auto, always or never (auto is never where $NO_COLOR is set)")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  AddOption(
      app, "--timeout", raw.timeout,
      "Give up after this time, waiting included (default: 30s per call, no limit for waiting)");
}

void AddSpecOptions(CLI::App& verb, Raw& raw) {
  AddOption(verb, "-f,--file,file", raw.arguments.file, "The spec, YAML or JSON; - is stdin");
  AddRepeated(verb, "--set", raw.arguments.sets, "Set a field of the spec: train.epochs=3");
  AddOption(verb, "--budget", raw.budget, "budget.time: a duration from acceptance");
  AddOption(verb, "--deadline", raw.deadline, "budget.deadline: a time (RFC 3339), or +2h");
  AddOption(verb, "--name", raw.name, "The Job's name");
  AddOption(verb, "--preset", raw.preset,
            "fast, balanced or best: fills fields that the spec leaves out");
  AddOption(verb, "--from", raw.from,
            "Go on from this finished Job: take its folds, and its spec for what -f leaves out");
  AddOption(verb, "--cache", raw.cache,
            "use, refresh or off: whether folds of earlier Jobs are taken over");
  verb.add_flag("--force-retrain", raw.force_retrain, "The same as --cache refresh");
  AddOption(verb, "--owner", raw.arguments.owner, "The owner of the Job, whose quota is charged");
  AddRepeated(verb, "-l,--label", raw.arguments.labels, "Add a label: key=value");
}

void AddPredictOptions(CLI::App& verb, Raw& raw) {
  Arguments& arguments = raw.arguments;
  AddOption(verb, "--data", arguments.data, "A file to predict; waits until it is predicted");
  AddOption(verb, "--rows", arguments.rows,
            "A few rows as CSV, answered at once on stdout; - is stdin");
  AddOption(verb, "--files", arguments.files_column,
            "With --rows: a column of files (images), whose bytes are sent");
  AddOption(verb, "-O,--out", arguments.to, "With --data: copy the predictions to this file");
  AddOption(verb, "--budget", raw.budget, "The time from acceptance to the deadline");
  AddOption(verb, "--deadline", raw.deadline, "A time (RFC 3339), or +2h from now");
  verb.add_option("--min-members", arguments.min_members,
                  "How many models must have answered by the deadline (default 1)")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  verb.add_option("--format", arguments.format, "csv, npy or zip (default: as in the Job's spec)")
      ->check(CLI::IsMember({"csv", "npy", "zip"}))
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  verb.add_flag("--no-probabilities", arguments.no_probabilities,
                "Leave out the columns p_<class>");
  AddOption(verb, "--name", raw.name, "The new Job's name");
  AddRepeated(verb, "-l,--label", arguments.labels, "Add a label: key=value");
  AddOption(verb, "--request-id", arguments.request_id,
            "Sending the same request with this id again makes no second Job");
  verb.add_flag("-F,--follow", arguments.follow, "Show the progress");
}

void AddVerbOptions(const std::string& name, CLI::App& verb, Raw& raw) {
  Arguments& arguments = raw.arguments;
  if (name == "submit" || name == "plan") AddSpecOptions(verb, raw);
  if (name == "submit") {
    AddOption(verb, "--request-id", arguments.request_id,
              "Submitting the same spec with this id again makes no second Job");
    verb.add_flag("--wait", arguments.wait, "Wait for the end; copy the predictions to `output`");
    verb.add_flag("-F,--follow", arguments.follow, "As --wait, and show the progress");
  } else if (name == "predict") {
    AddPredictOptions(verb, raw);
  } else if (name == "list") {
    AddRepeated(verb, "-l,--label", arguments.labels, "Only Jobs with this label: key=value");
    AddOption(verb, "--state", arguments.states, "Only Jobs in these states: running,queued");
  } else if (name == "metrics") {
    AddOption(verb, "-m,--metric", arguments.metrics, "Show only these: train_loss,val_metric");
    verb.add_flag("-F,--follow", arguments.follow, "Continue until the Job has ended");
    verb.add_flag("--plot", arguments.plot, "Draw them: the losses and the metric, or those of -m");
  } else if (name == "events") {
    verb.add_flag("-F,--follow", arguments.follow, "Continue until the Job has ended");
  } else if (name == "update") {
    AddOption(verb, "--budget", raw.budget, "The time from acceptance to the deadline");
    AddOption(verb, "--deadline", raw.deadline, "A time (RFC 3339), or +2h from now");
    verb.add_option("--priority", raw.arguments.priority, "Higher goes first, -100 to 100")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    AddRepeated(verb, "-l,--label", arguments.labels, "Set a label: key=value");
    AddRepeated(verb, "--unlabel", arguments.unlabels, "Remove a label: key");
  } else if (name == "quota") {
    verb.add_option("WORDS", arguments.words, "list [WHO] | set WHO 45h per 7d | remove WHO");
    verb.add_flag("--add", arguments.add, "Accept an owner that has no Job and no quota yet");
  } else if (name == "gc") {
    verb.add_flag("--dry-run", arguments.dry_run, "Delete nothing");
  } else if (name == "fetch") {
    AddOption(verb, "--name", arguments.artifact, "The file to copy (default: predictions.csv)");
    AddOption(verb, "-O,--to", arguments.to,
              "Where to write it; - is stdout (default: under its name in this folder)");
  }
}

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

// Explains the first word that no option or verb accepts.
std::string UnknownWord(const CLI::App& app, const CLI::App* verb, const std::string& word) {
  if (absl::StartsWith(word, "-")) {
    std::vector<std::string> names = OptionNames(app);
    if (verb != nullptr) {
      for (std::string& name : OptionNames(*verb)) names.push_back(std::move(name));
    }
    const std::string flag = word.substr(0, word.find('='));
    return absl::StrCat("unknown option ", Printable(flag), DidYouMean(flag, names));
  }
  if (verb != nullptr) return absl::StrCat("unexpected word '", Printable(word), "'");
  std::vector<std::string> verbs;
  for (const Verb& known : kVerbs) verbs.push_back(known.name);
  return absl::StrCat("there is no verb '", Printable(word), "'", DidYouMean(word, verbs));
}

// Makes the checks that the parser cannot make; returns "" if all is well.
std::string Complete(const CLI::App& verb, const Verb& known, Raw& raw) {
  Arguments& arguments = raw.arguments;
  arguments.verb = known.name;
  arguments.json = raw.output == "json";
  arguments.csv = raw.output == "csv";
  if (arguments.csv && arguments.verb != "trials") {
    return absl::StrCat(known.name, " prints a table or json, no csv");
  }
  arguments.progress = !raw.no_progress;
  arguments.color = raw.color == "always"  ? ColorMode::kAlways
                    : raw.color == "never" ? ColorMode::kNever
                                           : ColorMode::kAuto;
  if (!raw.timeout.empty()) {
    const auto timeout = DurationFromText(raw.timeout);
    if (!timeout.ok()) return absl::StrCat("--timeout ", timeout.status().message());
    arguments.timeout = *timeout;
  }
  if (const absl::Status server = CheckHostPort(arguments.server, 1); !server.ok()) {
    return absl::StrCat("--server ", server.message());
  }
  if (known.takes_job && arguments.job.empty())
    return absl::StrCat(known.name, " needs a JOB: an id or a name");
  if (arguments.plot && (arguments.follow || arguments.json)) {
    return "--plot draws the figures that there are, without --follow and -o json";
  }
  const std::string name = known.name;
  if (name != "submit" && name != "plan" && name != "update" && name != "predict") return "";
  if (verb.count("--budget") > 0) arguments.budget = raw.budget;
  if (verb.count("--deadline") > 0) arguments.deadline = raw.deadline;
  if (name == "update") {
    const bool nothing = !arguments.budget && !arguments.deadline && !arguments.priority &&
                         arguments.labels.empty() && arguments.unlabels.empty();
    return nothing ? "update needs --budget, --deadline, --priority, --label or --unlabel" : "";
  }
  if (name == "predict") {
    if (verb.count("--name") > 0) arguments.name = raw.name;
    if (arguments.data.empty() == arguments.rows.empty()) {
      return "predict needs either --data FILE or --rows FILE";
    }
    if (arguments.rows.empty() && !arguments.files_column.empty()) {
      return "--files needs --rows; a table given to --data names its files itself";
    }
    return "";
  }
  if (verb.count("--from") > 0) arguments.from = raw.from;
  if (verb.count("--cache") > 0) arguments.cache = raw.cache;
  if (raw.force_retrain) {
    if (arguments.cache && *arguments.cache != "refresh") {
      return "--force-retrain contradicts --cache " + *arguments.cache;
    }
    arguments.cache = "refresh";
  }
  if (arguments.file.empty() && !arguments.from) return name + " needs -f FILE, or --from JOB";
  if (verb.count("--name") > 0) arguments.name = raw.name;
  if (verb.count("--preset") > 0) arguments.preset = raw.preset;
  if (arguments.request_id.size() > 128) return "--request-id has more than 128 characters";
  return "";
}

// CLI11 wants the arguments in reverse order.
std::vector<std::string> Reversed(std::vector<std::string> args) {
  std::reverse(args.begin(), args.end());
  return args;
}

}  // namespace

int RunTrainctl(const std::vector<std::string>& args, Environment& environment) {
  Raw raw;
  raw.arguments.server = environment.default_server;
  CLI::App app("Submit training Jobs to traind and follow them.", "trainctl");
  app.footer(kFooter);
  app.require_subcommand(0, 1);
  app.allow_extras();
  AddCommon(app, raw);
  std::map<const CLI::App*, const Verb*> verbs;
  for (const Verb& known : kVerbs) {
    CLI::App* verb = app.add_subcommand(known.name, known.about);
    verb->fallthrough();
    verb->allow_extras();
    verb->footer("Options of trainctl itself may stand here, too: --server, -o, --timeout, ...");
    if (known.takes_job)
      verb->add_option("JOB", raw.arguments.job, "Its id, or its name if only one Job has it");
    AddVerbOptions(known.name, *verb, raw);
    verbs[verb] = &known;
  }
  std::string named;
  try {
    app.parse(Reversed(args));
  } catch (const CLI::CallForHelp&) {
    environment.out << app.help() << std::flush;
    return kExitOk;
  } catch (const CLI::ParseError& error) {
    const auto chosen = app.get_subcommands();
    return Misuse(environment, Printable(error.what(), 400),
                  chosen.empty() ? "" : chosen[0]->get_name());
  }
  const auto chosen = app.get_subcommands();
  const CLI::App* verb = chosen.empty() ? nullptr : chosen[0];
  if (verb != nullptr) named = verb->get_name();
  const std::vector<std::string> unknown = app.remaining(true);
  if (!unknown.empty()) return Misuse(environment, UnknownWord(app, verb, unknown[0]), named);
  if (verb == nullptr) {
    environment.err << app.help();
    return kExitUsage;
  }
  const Verb& known = *verbs.at(verb);
  const std::string wrong = Complete(*verb, known, raw);
  if (!wrong.empty()) return Misuse(environment, wrong, named);
  const int exit_code = known.run(raw.arguments, environment);
  environment.out.flush();
  return exit_code == kExitOk && !environment.out ? kExitError : exit_code;
}

}  // namespace traind
