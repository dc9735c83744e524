#include "client/command_table.h"

#include "client/verbs.h"

namespace traind {
namespace {

constexpr char kAbout[] = "Submit training Jobs to traind and follow them.";
constexpr char kFooter[] = R"(
Exit codes: 0 success; 1 error, or the Job FAILED; 2 wrong command line or spec; 3 the time of
--timeout has passed; 4 permission denied; 5 no such Job or file; 6 the request id belongs to
another spec; 7 traind cannot be reached; 9 the Job was cancelled; 130 Ctrl-C (the Job goes on).
Durations are written 90s, 15m, 1h30m, 2d or HH:MM:SS. docs/SPEC.md describes the spec.)";

}  // namespace

const std::vector<Verb>& Verbs() {
  static const std::vector<Verb>* const verbs = new std::vector<Verb>{
      {"init",
       "Look at data and write a commented job.yaml for them",
       RunInit,
       {"DATA", "[TEST]"},
       Prints::kText},
      {"explain",
       "Describe a field of the spec: train, train.epochs",
       RunExplain,
       {"[FIELD]"},
       Prints::kText},
      {"schema", "Print the spec's JSON Schema, for editors", RunSchema, {}, Prints::kText},
      {"validate",
       "Check a spec without traind: every mistake with its place",
       RunValidate,
       {"[FILE]"},
       Prints::kText},
      {"plan",
       "Show what would fit the budget and what would be cut; submits nothing",
       RunPlan,
       {"[FILE]"}},
      {"submit", "Submit a Job", RunSubmit, {"[FILE]"}},
      {"run",
       "Run a program of yours with a deadline: run --budget 30s -- python train.py",
       RunProgramVerb,
       {"-- COMMAND"}},
      {"predict", "Predict a file, or rows at once, with the models of a Job", RunPredict, {"JOB"}},
      {"list", "List Jobs, the newest first", RunList, {}, Prints::kList},
      {"get", "Show a Job", RunGet, {"JOB"}},
      {"watch", "Follow a Job to its end; Ctrl-C detaches", RunWatch, {"JOB"}},
      {"wait",
       "Wait until Jobs have ended; print a line for each",
       RunWait,
       {"JOB..."},
       Prints::kList,
       JsonLines::kAlso},
      {"top", "Show running Jobs and slots, again and again", RunTop, {}, Prints::kText},
      {"diff", "Compare the specs and the results of two Jobs", RunDiff, {"JOB", "JOB"}},
      {"trials",
       "List the settings that a Job tries: folds, score, weight, seconds",
       RunTrials,
       {"JOB"},
       Prints::kList,
       JsonLines::kNever,
       /*writes_csv=*/true},
      {"propose",
       "Add a trial to a Job with search.method ask: propose JOB learning_rate=0.05",
       RunPropose,
       {"JOB", "[FIELD=VALUE]..."}},
      {"metrics",
       "Print or draw the training figures of a Job",
       RunMetrics,
       {"JOB"},
       Prints::kList,
       JsonLines::kFollowing},
      {"events",
       "Print what happened to a Job",
       RunEvents,
       {"JOB"},
       Prints::kList,
       JsonLines::kFollowing},
      {"logs",
       "Print the logs of a Job's Attempts, or of the standalone Worker",
       RunLogs,
       {"[JOB]"},
       Prints::kList,
       JsonLines::kAlways},
      {"finish", "Stop training now and predict with the models that exist", RunFinish, {"JOB"}},
      {"pause", "Free the slots until resume; the clock goes on", RunPause, {"JOB"}},
      {"resume", "Continue a paused Job", RunResume, {"JOB"}},
      {"update", "Change a live Job's time, priority or labels", RunUpdate, {"JOB"}},
      {"cancel", "Stop a Job; predictions made so far stay", RunCancel, {"JOB"}},
      {"delete", "Delete a Job that is over, with its files and records", RunDelete, {"JOB"}},
      {"pin", "Keep a Job: retention does not delete it", RunPin, {"JOB"}},
      {"unpin", "Let retention delete a Job again", RunUnpin, {"JOB"}},
      {"gc", "Delete now what retention lets go; --dry-run lists it", RunGc, {}, Prints::kList},
      {"fetch",
       "Copy a file of a Job: predictions.csv or manifest.json; or what its uploaded program left",
       RunFetch,
       {"JOB"}},
      {"workers",
       "List the Workers and what their slots do; cordon or drain one",
       RunWorkers,
       {},
       Prints::kList},
      {"quota",
       "List, set or remove quotas of owners and labels: set local 45h per 7d",
       RunQuota,
       {},
       Prints::kList},
      {"config",
       "Show or change the contexts of the configuration file",
       RunConfig,
       {},
       Prints::kText},
      {"doctor",
       "Check the connection, the versions, the disk, the clock and the devices",
       RunDoctor,
       {},
       Prints::kText},
      {"completion",
       "Print the completions for a shell: bash, zsh or fish",
       RunCompletion,
       {"SHELL"},
       Prints::kText},
      {"man",
       "Print the manual page, or as Markdown the list of all options",
       RunMan,
       {},
       Prints::kText},
      {"version", "Print the version", RunVersion, {}},
  };
  return *verbs;
}

CommandTable::CommandTable() : app_(kAbout, "trainctl") {
  app_.footer(kFooter);
  app_.require_subcommand(0, 1);
  app_.allow_extras();
  AddCommon();
  for (const Verb& verb : Verbs()) AddVerb(verb);
}

const std::vector<std::string>& CommandTable::ChoicesOf(const CLI::Option& option) const {
  static const std::vector<std::string>* const none = new std::vector<std::string>();
  const auto found = choices_.find(&option);
  return found == choices_.end() ? *none : found->second;
}

CLI::Option* CommandTable::Text(CLI::App& app, const std::string& names, std::string& into,
                                const std::string& type, const std::string& about) {
  return app.add_option(names, into, about)
      ->type_name(type)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

CLI::Option* CommandTable::Choice(CLI::App& app, const std::string& names, std::string& into,
                                  const std::vector<std::string>& choices,
                                  const std::string& about) {
  CLI::Option* const option = Text(app, names, into, "WORD", about);
  option->check(CLI::IsMember(choices));
  choices_[option] = choices;
  return option;
}

void CommandTable::Repeated(CLI::App& app, const std::string& names, std::vector<std::string>& into,
                            const std::string& type, const std::string& about) {
  app.add_option(names, into, about)
      ->type_name(type)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

template <typename Number>
void CommandTable::Whole(CLI::App& app, const std::string& names, Number& into,
                         const std::string& about) {
  app.add_option(names, into, about)
      ->type_name("N")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void CommandTable::AddCommon() {
  Arguments& arguments = raw_.arguments;
  Text(app_, "--server", arguments.server, "HOST:PORT",
       "The address of traind (else $TRAINCTL_SERVER, the context, 127.0.0.1:7070)");
  Text(app_, "--tls", arguments.tls_dir, "DIR",
       "Speak TLS; the folder has ca.pem, the certificate that traind init-tls made");
  Text(app_, "--token", arguments.token_file, "FILE",
       "A file with the token that traind token add wrote; needs --tls");
  Text(app_, "-c,--context", raw_.context, "NAME",
       "A context of the configuration file (else $TRAINCTL_CONTEXT, its current one)");
  Choice(app_, "-o,--output", raw_.output,
         {"table", "wide", "json", "jsonl", "yaml", "csv", "name"},
         "The form of the output; wide, jsonl and csv are for lists, name prints ids");
  app_.add_flag("--no-progress", raw_.no_progress, "Print no progress bars and lines");
  app_.add_flag("-q,--quiet", arguments.quiet, "Print no progress and no hints");
  app_.add_flag("-v,--verbose", arguments.verbose, "Print Decisions with their arithmetic");
  Choice(app_, "--color", raw_.color, {"auto", "always", "never"},
         "auto is never where $NO_COLOR is set");
  Text(app_, "--timeout", raw_.timeout, "DURATION",
       "Give up after this time, waiting included (default: 30s per call, no limit for waiting)");
}

void CommandTable::AddVerb(const Verb& known) {
  CLI::App& verb = *app_.add_subcommand(known.name, known.about);
  verbs_[&verb] = &known;
  verb.fallthrough();
  verb.allow_extras();
  verb.footer("Options of trainctl itself may stand here, too: --server, -o, --timeout, ...");
  const std::string name = known.name;
  if (name == "diff") {
    verb.add_option("JOBS", raw_.jobs, "Two Jobs: their ids, or names that only one Job has")
        ->type_name("JOB")
        ->expected(0, 2);
  } else if (!known.takes.empty() && known.takes[0] == "JOB...") {
    verb.add_option("JOBS", raw_.jobs, "Jobs: their ids, or names that only one Job has")
        ->type_name("JOB")
        ->expected(0, CLI::detail::expected_max_vector_size);
  } else if (!known.takes.empty() && (known.takes[0] == "JOB" || known.takes[0] == "[JOB]")) {
    verb.add_option("JOB", raw_.arguments.job, "Its id, or its name if only one Job has it")
        ->type_name("JOB");
  }
  AddOtherOptions(name, verb);
}

void CommandTable::AddSpecOptions(CLI::App& verb) {
  Arguments& arguments = raw_.arguments;
  Text(verb, "-f,--file,file", arguments.file, "FILE", "The spec, YAML or JSON; - is stdin");
  Repeated(verb, "--set", arguments.sets, "FIELD=VALUE", "Set a field of the spec: train.epochs=3");
  Text(verb, "--budget", raw_.budget, "DURATION", "budget.time: a duration from acceptance");
  Text(verb, "--deadline", raw_.deadline, "TIME", "budget.deadline: a time (RFC 3339), or +2h");
  Text(verb, "--name", raw_.name, "NAME", "The Job's name");
  Text(verb, "--preset", raw_.preset, "NAME",
       "fast, balanced or best: fills fields that the spec leaves out");
  Text(verb, "--from", raw_.from, "JOB",
       "Go on from this finished Job: take its folds, and its spec for what -f leaves out");
  Repeated(verb, "--after", arguments.after, "JOB",
           "Start when this Job has succeeded; the time of --budget counts from then");
  Text(verb, "--cache", raw_.cache, "WORD",
       "use, refresh or off: whether folds of earlier Jobs are taken over");
  verb.add_flag("--force-retrain", raw_.force_retrain, "The same as --cache refresh");
  Text(verb, "--owner", arguments.owner, "NAME",
       "The owner of the Job, whose quota is charged; with tokens only admins name another");
  Repeated(verb, "-l,--label", arguments.labels, "KEY=VALUE", "Add a label");
  verb.add_flag("--upload", arguments.upload,
                "Send the files to traind, which need not see them here");
}

void CommandTable::AddSubmitOptions(CLI::App& verb) {
  Arguments& arguments = raw_.arguments;
  Text(verb, "--request-id", arguments.request_id, "ID",
       "Submitting the same spec with this id again makes no second Job");
  verb.add_flag("--wait", arguments.wait, "Wait for the end; copy the predictions to `output`");
  verb.add_flag("-F,--follow", arguments.follow, "Show the progress until the Job ends");
  Repeated(verb, "--array", arguments.arrays, "FIELD=VALUES",
           "A Job for each value: train.learning_rate=0.1,0.01 or data.seed=1..5; of several all "
           "combinations");
  Whole(verb, "--at-once", arguments.at_once, "So many Jobs of the array run at a time");
  Text(verb, "-O,--out", arguments.to, "DIR",
       "With --upload of a program: where its files go at the end (default: its folder)");
}

void CommandTable::AddPredictOptions(CLI::App& verb) {
  Arguments& arguments = raw_.arguments;
  Text(verb, "--data", arguments.data, "FILE", "A file to predict; waits until it is predicted");
  Text(verb, "--rows", arguments.rows, "FILE",
       "A few rows as CSV, answered at once on stdout; - is stdin");
  Text(verb, "--files", arguments.files_column, "COLUMN",
       "With --rows: a column of files (images), whose bytes are sent");
  Text(verb, "-O,--out", arguments.to, "FILE", "With --data: copy the predictions to this file");
  Text(verb, "--budget", raw_.budget, "DURATION", "The time from acceptance to the deadline");
  Text(verb, "--deadline", raw_.deadline, "TIME", "A time (RFC 3339), or +2h from now");
  Whole(verb, "--min-members", arguments.min_members,
        "How many models must have answered by the deadline (default 1)");
  Choice(verb, "--format", arguments.format, {"csv", "npy", "zip"},
         "The file's format (default: as in the Job's spec)");
  verb.add_flag("--no-probabilities", arguments.no_probabilities,
                "Leave out the columns p_<class>");
  Text(verb, "--name", raw_.name, "NAME", "The new Job's name");
  Repeated(verb, "-l,--label", arguments.labels, "KEY=VALUE", "Add a label");
  Text(verb, "--request-id", arguments.request_id, "ID",
       "Sending the same request with this id again makes no second Job");
  verb.add_flag("--upload", arguments.upload,
                "Send the files to traind, which need not see them here");
  verb.add_flag("-F,--follow", arguments.follow, "Show the progress");
}

void CommandTable::AddRunOptions(CLI::App& verb) {
  Arguments& arguments = raw_.arguments;
  RunArguments& run = arguments.run;
  Text(verb, "--budget", raw_.budget, "DURATION", "The time from acceptance to the deadline");
  Text(verb, "--deadline", raw_.deadline, "TIME", "A time (RFC 3339), or +2h from now");
  Repeated(verb, "--after", arguments.after, "JOB",
           "Start when this Job has succeeded; the time of --budget counts from then");
  Whole(verb, "--folds", run.folds, "Run it so many times, each with another {fold} (default 1)");
  Repeated(verb, "--expect", run.expect, "FILE",
           "A file that it must leave; * and ? stand for characters");
  Text(verb, "--sample", run.sample, "FILE",
       "A CSV file whose columns and rows the expected files must have");
  Repeated(verb, "--checkpoint", run.checkpoints, "FILE",
           "A file that it resumes from, of which a whole copy is kept");
  verb.add_flag("--offline", run.offline, "It has no network");
  Text(verb, "-O,--out", arguments.to, "DIR", "Where its files go (default: this folder)");
  Whole(verb, "--epochs", run.epochs, "Its epochs, which the plan may cut by $TRAIND_EPOCHS");
  Whole(verb, "--seed", run.seed, "The value of {seed} and $TRAIND_SEED (default 0)");
  Whole(verb, "--slots", run.slots, "Slots of each fold: ranks, as torchrun numbers them");
  Repeated(verb, "--env", run.environment, "NAME=VALUE", "A further variable of its environment");
  verb.add_flag(
      "--upload", arguments.upload,
      "Send this folder to traind, which need not see it, and fetch the files at the end");
  verb.add_flag("--detach", run.detach, "Print the Job's id and do not wait");
  Text(verb, "--name", raw_.name, "NAME", "The Job's name");
  Text(verb, "--owner", arguments.owner, "NAME",
       "The owner of the Job, whose quota is charged; with tokens only admins name another");
  Repeated(verb, "-l,--label", arguments.labels, "KEY=VALUE", "Add a label");
  Text(verb, "--request-id", arguments.request_id, "ID",
       "Sending the same request with this id again makes no second Job");
}

void CommandTable::AddUpdateOptions(CLI::App& verb) {
  Arguments& arguments = raw_.arguments;
  Text(verb, "--budget", raw_.budget, "DURATION", "The time from acceptance to the deadline");
  Text(verb, "--deadline", raw_.deadline, "TIME", "A time (RFC 3339), or +2h from now");
  Whole(verb, "--priority", arguments.priority, "Higher goes first, -100 to 100");
  Repeated(verb, "-l,--label", arguments.labels, "KEY=VALUE", "Set a label");
  Repeated(verb, "--unlabel", arguments.unlabels, "KEY", "Remove a label");
}

void CommandTable::AddLogOptions(CLI::App& verb) {
  LogArguments& logs = raw_.arguments.logs;
  verb.add_flag("--worker", logs.worker, "The standalone Worker's log instead of a Job's");
  Whole(verb, "--fold", logs.fold, "Only Attempts of this fold");
  Whole(verb, "--rank", logs.rank, "Only this rank");
  Choice(verb, "--level", logs.level, {"info", "warning", "error"}, "The least level");
  Text(verb, "--grep", logs.grep, "RE", "Only lines that this regular expression (RE2) finds");
  Text(verb, "--since", logs.since, "TIME", "Only lines since this time, or since 10m ago");
  Whole(verb, "--tail", logs.tail, "Show only the last N lines of each log");
  verb.add_flag("-F,--follow", raw_.arguments.follow, "Continue until the Job has ended");
}

void CommandTable::AddInitOptions(CLI::App& verb) {
  InitArguments& init = raw_.arguments.init;
  Text(verb, "DATA", init.data, "FILE", "The training file, or a folder of images");
  Text(verb, "TEST", init.test, "FILE", "The rows to predict");
  Text(verb, "--target", init.target, "COLUMN", "The column to predict (default: a guess)");
  Text(verb, "-O,--out", raw_.arguments.to, "FILE",
       "The file to write; - is stdout (default: job.yaml beside the data)");
  verb.add_flag("--force", init.force, "Replace the file if it exists");
}

void CommandTable::AddOtherOptions(const std::string& name, CLI::App& verb) {
  Arguments& arguments = raw_.arguments;
  if (name == "submit" || name == "plan") AddSpecOptions(verb);
  if (name == "submit") AddSubmitOptions(verb);
  if (name == "run") AddRunOptions(verb);
  if (name == "predict") AddPredictOptions(verb);
  if (name == "update") AddUpdateOptions(verb);
  if (name == "logs") AddLogOptions(verb);
  if (name == "init") AddInitOptions(verb);
  if (name == "validate") {
    Text(verb, "-f,--file,file", arguments.file, "FILE", "The spec, YAML or JSON; - is stdin");
    Repeated(verb, "--set", arguments.sets, "FIELD=VALUE",
             "Set a field of the spec: train.epochs=3");
  } else if (name == "list") {
    Repeated(verb, "-l,--label", arguments.labels, "KEY=VALUE", "Only Jobs with this label");
    Text(verb, "--state", arguments.states, "STATES", "Only Jobs in these states: running,queued");
    Text(verb, "--array", arguments.array, "ID", "Only Jobs of this array");
  } else if (name == "cancel") {
    Text(verb, "--array", arguments.array, "ID", "All Jobs of this array instead of one");
  } else if (name == "propose") {
    verb.add_option("SETTINGS", arguments.words,
                    "Fields of the space: learning_rate=0.05; those left out are as in trial 0")
        ->type_name("FIELD=VALUE");
    Text(verb, "--request-id", arguments.request_id, "ID",
         "Proposing the same settings with this id again answers the same trial");
  } else if (name == "metrics") {
    Text(verb, "-m,--metric", arguments.metrics, "NAMES", "Only these: train_loss,val_metric");
    verb.add_flag("-F,--follow", arguments.follow, "Continue until the Job has ended");
    verb.add_flag("--plot", arguments.plot, "Draw them: the losses and the metric, or those of -m");
  } else if (name == "events") {
    verb.add_flag("-F,--follow", arguments.follow, "Continue until the Job has ended");
  } else if (name == "quota") {
    verb.add_option("WORDS", arguments.words, "list [WHO] | set WHO 45h per 7d | remove WHO")
        ->type_name("WORDS");
    verb.add_flag("--add", arguments.add, "Accept an owner that has no Job and no quota yet");
  } else if (name == "workers") {
    verb.add_option("WORDS", arguments.words,
                    "list | cordon WORKER | drain WORKER | uncordon WORKER")
        ->type_name("WORDS");
    Text(verb, "--grace", arguments.grace, "DURATION",
         "With drain: for so long its folds may go on (default 0s)");
    verb.add_flag("--wait", arguments.wait, "With drain: until nothing runs there");
  } else if (name == "config") {
    verb.add_option("WORDS", arguments.words,
                    "view | list | set NAME server=HOST:PORT output=wide | use NAME | remove NAME")
        ->type_name("WORDS");
  } else if (name == "wait") {
    verb.add_flag("--all", arguments.all, "Wait until all have ended (the default)");
    verb.add_flag("--any", arguments.any, "Wait until one has ended");
    Text(verb, "--array", arguments.array, "ID", "The Jobs of this array");
  } else if (name == "gc") {
    verb.add_flag("--dry-run", arguments.dry_run, "Delete nothing");
  } else if (name == "fetch") {
    Text(verb, "--name", arguments.artifact, "FILE", "The file to copy (default: predictions.csv)");
    Text(verb, "-O,--out,--to", arguments.to, "PATH",
         "The file to write, - for stdout, or the folder for what a program left (default: named "
         "as the file or the Job, in this folder)");
  } else if (name == "explain") {
    Text(verb, "FIELD", arguments.field, "FIELD", "Its path; without one, the whole spec");
    verb.add_flag("--recursive", arguments.recursive, "The fields of its sections, too");
  } else if (name == "completion") {
    Choice(verb, "SHELL", arguments.shell, {"bash", "zsh", "fish"}, "The shell to complete for");
  } else if (name == "man") {
    verb.add_flag("--markdown", arguments.markdown, "The list of all options in docs/TRAINCTL.md");
  } else if (name == "doctor") {
    Text(verb, "--data", arguments.data, "FILE", "Check whether traind may read this file, too");
  } else if (name == "top") {
    Text(verb, "--every", arguments.every, "DURATION", "The time between two looks (default: 2s)");
    verb.add_flag("--once", arguments.once, "Look once");
  }
}

}  // namespace traind
