#include "client/command_text.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <google/protobuf/descriptor.pb.h>

#include <algorithm>

#include "client/contexts.h"
#include "client/exit_codes.h"
#include "client/training_client.h"
#include "client/verbs.h"
#include "client/version.h"
#include "common/spec/spec_descriptors.h"
#include "common/spec/spec_schema.h"

namespace traind {
namespace {

constexpr char kBash[] = R"sh(_trainctl() {
  local line words=("${COMP_WORDS[@]:1:COMP_CWORD}")
  COMPREPLY=()
  # bash splits words at '=' and ':'; what was split is joined again.
  while IFS= read -r line; do
    if [[ $line == :files ]]; then
      compopt -o filenames 2>/dev/null
      COMPREPLY+=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}"))
    else
      COMPREPLY+=("$line")
    fi
  done < <(trainctl __complete "${words[@]}" 2>/dev/null)
  [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
}
complete -F _trainctl trainctl
)sh";

constexpr char kZsh[] = R"sh(#compdef trainctl
_trainctl() {
  local -a found
  found=(${(f)"$(trainctl __complete "${words[@]:1:$((CURRENT - 1))}" 2>/dev/null)"})
  if (( ${found[(Ie):files]} )); then
    found=(${found:#:files})
    _files
  fi
  compadd -a found
}
compdef _trainctl trainctl
)sh";

constexpr char kFish[] = R"sh(function __trainctl
  set -l words (commandline -opc) (commandline -ct)
  for line in (trainctl __complete $words[2..-1] 2>/dev/null)
    if test "$line" = :files
      __fish_complete_path (commandline -ct)
    else
      echo $line
    end
  end
end
complete -c trainctl -f -a '(__trainctl)'
)sh";

constexpr absl::Duration kAskLimit = absl::Milliseconds(500);

// ---- Completion -------------------------------------------------------------

// Returns the option of that name, of the verb or of trainctl itself; null: none.
const CLI::Option* FindOption(const CLI::App& app, const CLI::App* verb, const std::string& name) {
  for (const CLI::App* of : {verb, &app}) {
    if (of == nullptr) continue;
    for (const CLI::Option* option : of->get_options()) {
      if (!name.empty() && name[0] == '-' && option->check_name(name)) return option;
    }
  }
  return nullptr;
}

// Returns "FILE"; CLI11 adds the words of a choice behind a colon.
std::string TypeOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(":{"));
}

bool TakesValue(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// The words of a line that were read before the one that is being written.
struct Line {
  const CLI::App* verb = nullptr;
  size_t words = 0;                     // behind the verb that are no options
  const CLI::Option* option = nullptr;  // whose value is being written
  std::string server, context;
};

Line ReadLine(CommandTable& table, const std::vector<std::string>& words) {
  Line line;
  for (const std::string& word : words) {
    if (line.option != nullptr) {
      if (line.option->check_name("--server")) line.server = word;
      if (line.option->check_name("--context")) line.context = word;
      line.option = nullptr;
    } else if (absl::StartsWith(word, "-") && word.size() > 1) {
      const CLI::Option* const option = FindOption(table.app(), line.verb, word);
      if (option != nullptr && TakesValue(*option)) line.option = option;
    } else if (line.verb == nullptr) {
      for (const CLI::App* verb : table.app().get_subcommands({})) {
        if (verb->get_name() == word) line.verb = verb;
      }
    } else {
      ++line.words;
    }
  }
  return line;
}

// Returns ids, and names that only one Job has.
std::vector<std::string> JobWords(Environment& environment, const Line& line) {
  std::string server = line.server, output;
  if (!ApplyContext(environment, "list", line.context, server, output).ok()) return {};
  TrainingClient::Options options;
  options.server = server;
  options.connect = options.call = kAskLimit;
  TrainingClient client(options, environment.clock);
  v1::ListJobsRequest request;
  request.set_page_size(200);
  const auto page = client.ListJobsPage(request);
  if (!page.ok()) return {};
  std::vector<std::string> words;
  std::map<std::string, int> names;
  for (const v1::Job& job : page->jobs()) {
    words.push_back(job.id());
    ++names[job.name()];
  }
  for (const auto& [name, jobs] : names) {
    if (jobs == 1) words.push_back(name);
  }
  return words;
}

std::vector<std::string> FieldWords(absl::string_view ending) {
  google::protobuf::FileDescriptorSet files;
  const absl::string_view bytes = SpecDescriptors();
  if (!files.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return {};
  auto paths = SpecPaths(files);
  if (!paths.ok()) return {};
  for (std::string& path : *paths) absl::StrAppend(&path, ending);
  return *std::move(paths);
}

std::vector<std::string> WordsOfType(Environment& environment, const Line& line,
                                     const std::string& type) {
  if (absl::StrContains(type, "JOB")) return JobWords(environment, line);
  if (type == "FIELD=VALUE") return FieldWords("=");
  if (absl::StrContains(type, "FIELD")) return FieldWords("");
  if (absl::StrContains(type, "SHELL")) return {"bash", "zsh", "fish"};
  if (absl::StrContains(type, "FILE") || type == "DATA" || type == "[TEST]") return {":files"};
  return {};
}

std::vector<std::string> ContextNames(const Environment& environment) {
  std::vector<std::string> names;
  if (const auto file = ReadContexts(environment.config_file); file.ok()) {
    for (const auto& [name, context] : file->contexts) names.push_back(name);
  }
  return names;
}

std::vector<std::string> Candidates(CommandTable& table, Environment& environment, const Line& line,
                                    const std::string& current) {
  if (line.option != nullptr) {
    if (line.option->check_name("--context")) return ContextNames(environment);
    const std::vector<std::string>& choices = table.ChoicesOf(*line.option);
    return choices.empty() ? WordsOfType(environment, line, TypeOf(*line.option)) : choices;
  }
  std::vector<std::string> words;
  if (absl::StartsWith(current, "-")) {
    for (const CLI::App* of : {line.verb, static_cast<const CLI::App*>(&table.app())}) {
      if (of == nullptr) continue;
      for (const CLI::Option* option : of->get_options()) {
        for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
      }
    }
    return words;
  }
  if (line.verb == nullptr) {
    for (const Verb& verb : Verbs()) words.push_back(verb.name);
    return words;
  }
  const std::vector<std::string>& takes = table.VerbOf(*line.verb).takes;
  if (takes.empty()) return words;
  const bool repeats = absl::EndsWith(takes.back(), "...");
  const size_t word = repeats ? std::min(line.words, takes.size() - 1) : line.words;
  return word < takes.size() ? WordsOfType(environment, line, takes[word]) : words;
}

// ---- The manual -------------------------------------------------------------

std::string Troff(const std::string& text) {
  std::string escaped = absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}});
  if (absl::StartsWith(escaped, ".") || absl::StartsWith(escaped, "'")) escaped = "\\&" + escaped;
  return escaped;
}

// Returns "-f, --file FILE".
std::string OptionHead(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  std::string head;
  for (const std::string& name : names) absl::StrAppend(&head, head.empty() ? "" : ", ", name);
  return TakesValue(option) ? absl::StrCat(head, " ", TypeOf(option)) : head;
}

std::string Meaning(const CommandTable& table, const CLI::Option& option) {
  std::string text = option.get_description();
  const std::vector<std::string>& choices = table.ChoicesOf(option);
  for (size_t i = 0; i < choices.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? " (" : ", ", choices[i], i + 1 == choices.size() ? ")" : "");
  }
  return text;
}

// Returns the options, without the words behind a verb and without --help.
std::vector<const CLI::Option*> OptionsOf(const CLI::App& app) {
  std::vector<const CLI::Option*> options;
  for (const CLI::Option* option : app.get_options()) {
    const bool named = !option->get_lnames().empty() || !option->get_snames().empty();
    if (named && !option->check_name("--help")) options.push_back(option);
  }
  return options;
}

std::string Usage(const Verb& verb) {
  std::string usage = verb.name;
  for (const std::string& word : verb.takes) absl::StrAppend(&usage, " ", word);
  return usage;
}

void AddOptions(const CommandTable& table, const CLI::App& app, std::string& text) {
  for (const CLI::Option* option : OptionsOf(app)) {
    absl::StrAppend(&text, ".TP\n.B ", Troff(OptionHead(*option)), "\n",
                    Troff(Meaning(table, *option)), "\n");
  }
}

}  // namespace

int RunComplete(const std::vector<std::string>& args, Environment& environment) {
  CommandTable table;
  std::vector<std::string> words(args.begin() + 1, args.end());
  std::string current;
  if (!words.empty()) {
    current = words.back();
    words.pop_back();
  }
  const Line line = ReadLine(table, words);
  for (const std::string& word : Candidates(table, environment, line, current)) {
    if (word == ":files" || absl::StartsWith(word, current)) environment.out << word << "\n";
  }
  return kExitOk;
}

std::string CompletionScript(const std::string& shell) {
  return shell == "bash" ? kBash : shell == "zsh" ? kZsh : kFish;
}

std::string ManualPage(CommandTable& table) {
  std::string text = absl::StrCat(".TH TRAINCTL 1 \"\" \"traind ", kClientVersion,
                                  "\" \"User Commands\"\n.SH NAME\ntrainctl \\- submit training "
                                  "Jobs to traind and follow them\n.SH SYNOPSIS\n.B trainctl\n"
                                  "[OPTIONS] VERB [WORDS] [OPTIONS]\n.SH OPTIONS OF ALL VERBS\n");
  AddOptions(table, table.app(), text);
  text += ".SH VERBS\n";
  for (const CLI::App* verb : table.app().get_subcommands({})) {
    absl::StrAppend(&text, ".SS ", Troff(Usage(table.VerbOf(*verb))), "\n",
                    Troff(verb->get_description()), ".\n");
    AddOptions(table, *verb, text);
  }
  absl::StrAppend(&text, ".SH EXIT STATUS\n",
                  Troff(std::string(absl::StripAsciiWhitespace(table.app().get_footer()))), "\n");
  return text;
}

std::string OptionList(CommandTable& table) {
  std::string text = "| verb | options |\n| --- | --- |\n";
  const auto add = [&](const std::string& name, const CLI::App& app, const std::string& about) {
    std::string options;
    for (const CLI::Option* option : OptionsOf(app)) {
      absl::StrAppend(&options, options.empty() ? "" : "<br>", "`", OptionHead(*option), "` ",
                      Meaning(table, *option));
    }
    absl::StrAppend(&text, "| `", name, "`<br>", about, " | ",
                    absl::StrReplaceAll(options, {{"|", "\\|"}}), " |\n");
  };
  add("trainctl", table.app(), "Options of all verbs");
  for (const CLI::App* verb : table.app().get_subcommands({})) {
    add(Usage(table.VerbOf(*verb)), *verb, verb->get_description());
  }
  return text;
}

int RunCompletion(const Arguments& arguments, Environment& environment) {
  environment.out << CompletionScript(arguments.shell);
  return kExitOk;
}

int RunMan(const Arguments& arguments, Environment& environment) {
  CommandTable table;
  environment.out << (arguments.markdown ? OptionList(table) : ManualPage(table));
  return kExitOk;
}

}  // namespace traind
