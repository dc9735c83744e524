// The one table of trainctl's verbs and options. The parser, the help, the completions, the man
// page and the list of options in docs/TRAINCTL.md are made from it.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "client/arguments.h"
#include "client/environment.h"

namespace traind {

// How a verb's output may be written.
enum class Prints {
  kText,      // no choice
  kDocument,  // a table, JSON, YAML, or the name of what has one
  kList,      // also the wide table, JSON lines and CSV
};

// Whether a verb writes lines of JSON by itself, as they come.
enum class JsonLines {
  kNever,      // `-o jsonl` is made from its document, as the other forms are
  kAlso,       // for `-o jsonl`
  kFollowing,  // with --follow, where it has no other form for scripts
  kAlways,     // it has no other form for scripts
};

struct Verb {
  const char* name;
  const char* about;
  int (*run)(const Arguments&, Environment&);
  // Names of the words that stand behind the verb; "JOB" is required, "[JOB]" is not,
  // and "JOB..." is one or more.
  std::vector<std::string> takes;
  Prints prints = Prints::kDocument;
  JsonLines json_lines = JsonLines::kNever;
  bool writes_csv = false;  // by itself, not from its document
};

// All verbs, in the order of the help.
const std::vector<Verb>& Verbs();

// The parser's output, which is then checked and turned into Arguments.
struct RawArguments {
  Arguments arguments;
  std::string context;
  std::string output;
  std::string color = "auto";
  std::string timeout;
  bool no_progress = false;
  std::string budget, deadline, name, preset, cache, from;
  bool force_retrain = false;
  std::vector<std::string> jobs;
};

// The table, ready to parse one command line.
// Threads: confined to one.
class CommandTable {
 public:
  CommandTable();
  CommandTable(const CommandTable&) = delete;
  CommandTable& operator=(const CommandTable&) = delete;

  CLI::App& app() { return app_; }
  RawArguments& raw() { return raw_; }
  // Returns the verb of a subcommand of app().
  const Verb& VerbOf(const CLI::App& subcommand) const { return *verbs_.at(&subcommand); }
  // Returns the words that the option takes; empty: any.
  const std::vector<std::string>& ChoicesOf(const CLI::Option& option) const;

 private:
  CLI::Option* Text(CLI::App& app, const std::string& names, std::string& into,
                    const std::string& type, const std::string& about);
  CLI::Option* Choice(CLI::App& app, const std::string& names, std::string& into,
                      const std::vector<std::string>& choices, const std::string& about);
  // Each occurrence of the option takes one value; the next word does not belong to it.
  void Repeated(CLI::App& app, const std::string& names, std::vector<std::string>& into,
                const std::string& type, const std::string& about);
  template <typename Number>
  void Whole(CLI::App& app, const std::string& names, Number& into, const std::string& about);

  void AddCommon();
  void AddVerb(const Verb& verb);
  void AddSpecOptions(CLI::App& verb);
  void AddSubmitOptions(CLI::App& verb);
  void AddPredictOptions(CLI::App& verb);
  void AddRunOptions(CLI::App& verb);
  void AddUpdateOptions(CLI::App& verb);
  void AddLogOptions(CLI::App& verb);
  void AddInitOptions(CLI::App& verb);
  void AddOtherOptions(const std::string& name, CLI::App& verb);

  CLI::App app_;
  RawArguments raw_;
  std::map<const CLI::App*, const Verb*> verbs_;
  std::map<const CLI::Option*, std::vector<std::string>> choices_;
};

}  // namespace traind
