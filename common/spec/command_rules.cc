#include "common/spec/command_rules.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/strip.h>

#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "common/job_rules/program_rules.h"
#include "common/search/range.h"
#include "common/spec/field_text.h"

namespace traind {
namespace {

using Add = std::function<void(const std::string&, const std::string&)>;
using Words = google::protobuf::RepeatedPtrField<std::string>;

// settings: names that stand for values, besides the placeholders.
void CheckWords(const std::string& path, const Words& command,
                const std::vector<std::string>& settings, const Add& add) {
  if (command.size() > 0 && command[0].empty()) add(absl::StrCat(path, "[0]"), "is empty");
  for (int i = 0; i < command.size(); ++i) {
    const std::string unknown = UnknownPlaceholder(command[i], settings);
    if (unknown.empty()) continue;
    std::vector<std::string> known(std::begin(kPlaceholders), std::end(kPlaceholders));
    for (const std::string& name : settings) known.push_back(absl::StrCat("{", name, "}"));
    add(absl::StrCat(path, "[", i, "]"),
        absl::StrCat("'", Printable(unknown), "' is none of ", absl::StrJoin(known, ", "),
                     "; the text itself is written {", Printable(unknown), "}"));
  }
}

void CheckPattern(const std::string& path, const std::string& pattern, const Add& add) {
  const std::string problem = PatternProblem(pattern);
  if (!problem.empty()) add(path, absl::StrCat("'", Printable(pattern), "' ", problem));
}

void CheckPatterns(const std::string& path, const Words& patterns, const Add& add) {
  for (int i = 0; i < patterns.size(); ++i) {
    CheckPattern(absl::StrCat(path, "[", i, "]"), patterns[i], add);
  }
}

// Returns the names of a program's settings: those that have a value, and those of a search.
std::vector<std::string> SettingsOf(const v1::JobSpec& spec, const Add& add) {
  std::set<std::string> names;
  for (const auto& [name, value] : spec.model().command().settings()) {
    names.insert(name);
    if (IsSettingName(name)) continue;
    add(absl::StrCat("model.command.settings.", Printable(name)),
        absl::StrCat("is no name of a setting: small letters and _, and none of ",
                     absl::StrJoin(kPlaceholders, ", ")));
  }
  for (const auto& [path, range] : spec.search().space()) {
    absl::string_view name = path;
    absl::ConsumePrefix(&name, kSettingPath);
    if (IsSettingName(name)) names.emplace(name);
  }
  return {names.begin(), names.end()};
}

// A setting that nothing reads was meant for something else.
void CheckUsed(const v1::CommandSpec& command, const std::vector<std::string>& settings,
               const Add& add) {
  std::set<std::string> used;
  const auto look = [&used](const std::string& text) {
    for (const std::string& word : WordsInBraces(text)) used.insert(word);
  };
  for (const Words* words : {&command.train(), &command.predict(), &command.setup()}) {
    for (const std::string& word : *words) look(word);
  }
  for (const auto& [name, value] : command.environment()) look(value);
  for (const std::string& name : settings) {
    if (used.count(absl::StrCat("{", name, "}")) > 0) continue;
    add(absl::StrCat("model.command.settings.", name),
        absl::StrCat("is read by nothing: write {", name,
                     "} in train or in a value of environment"));
  }
}

// Ranks meet by the network, and all would set the folder up.
void CheckOneRank(const v1::JobSpec& spec, const std::string& section, bool setup,
                  const std::string& network, const Add& add) {
  if (spec.resources().slots() <= 1) return;
  if (setup) add(section + ".setup", "is of programs with one slot (resources.slots)");
  if (network == "off") {
    add(section + ".network", "'off' is of programs with one slot (resources.slots)");
  }
}

// Other models use the program's time, so what is true of model.automatic is true of them.
void CheckBeside(const v1::JobSpec& spec, const Add& add) {
  std::set<std::string> seen;
  for (const std::string& kind : spec.model().command().beside()) {
    if (!seen.insert(kind).second) {
      add("model.command.beside", absl::StrCat("has '", Printable(kind), "' twice"));
    }
  }
  if (spec.has_search()) {
    add("model.command.beside", "does not go with search, which varies the program alone");
  }
  if (spec.resources().slots() > 1) {
    add("model.command.beside", absl::StrCat("trains a fold on one slot, but resources.slots is ",
                                             spec.resources().slots()));
  }
}

void CheckEnvironment(const std::string& path,
                      const google::protobuf::Map<std::string, std::string>& environment,
                      const Add& add) {
  const std::map<std::string, std::string> sorted(environment.begin(), environment.end());
  for (const auto& [name, value] : sorted) {
    const std::string at = absl::StrCat(path, ".", Printable(name));
    if (name.empty() || absl::StrContains(name, '=')) {
      add(at, "is no name of a variable");
    } else if (absl::StartsWith(name, kVariablePrefix)) {
      add(at, "is set by traind itself");
    }
  }
}

std::string OnlyField(v1::TrainSpec train, const google::protobuf::FieldDescriptor* kept) {
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  train.GetReflection()->ListFields(train, &fields);
  for (const auto* const field : fields) {
    if (field != kept) train.GetReflection()->ClearField(&train, field);
  }
  return train.SerializeAsString();
}

// All but the time between interim answers is about networks.
void CheckNoTraining(const v1::TrainSpec& train, const v1::TrainSpec& usual, const Add& add) {
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  train.GetReflection()->ListFields(train, &fields);
  for (const auto* const field : fields) {
    if (field->name() == "checkpoint_every") continue;
    if (OnlyField(train, field) == OnlyField(usual, field)) continue;
    add(absl::StrCat("train.", field->name()),
        field->name() == "epochs"
            ? "has no meaning for a program; model.command.epochs is its number of epochs"
            : "has no meaning for a program (model.command); leave it out");
  }
}

void CheckRows(const v1::DataSpec& data, const Add& add) {
  if (data.targets_size() > 1) {
    add("data.target", "is a list; a program (model.command) answers for one target");
  }
  for (const auto& [field, set] : {std::make_pair("data.time", !data.time().empty()),
                                   std::make_pair("data.image", data.has_image()),
                                   std::make_pair("data.text", data.has_text()),
                                   std::make_pair("data.volume", data.has_volume())}) {
    if (set) add(field, "does not go with a program (model.command), which learns from plain rows");
  }
}

}  // namespace

void CheckRunProgram(const v1::JobSpec& spec, const Add& add) {
  const v1::RunSpec& run = spec.run();
  CheckOneRank(spec, "run", run.setup_size() > 0, run.network(), add);
  CheckWords("run.command", run.command(), {}, add);
  CheckWords("run.setup", run.setup(), {}, add);
  CheckPatterns("run.checkpoints", run.checkpoints(), add);
  const bool described = !run.sample_submission().empty() || !run.ranges().empty();
  if (described && run.expect().empty()) {
    add(run.ranges().empty() ? "run.sample_submission" : "run.ranges",
        "is of the expected files; name them in run.expect");
  }
  const std::map<std::string, std::string> ranges(run.ranges().begin(), run.ranges().end());
  for (const auto& [column, text] : ranges) {
    const auto range = ParseRange(text);
    if (!range.ok()) {
      add(absl::StrCat("run.ranges.", Printable(column)), std::string(range.status().message()));
    }
  }
  for (int i = 0; i < run.expect_size(); ++i) {
    CheckPattern(absl::StrCat("run.expect[", i, "]"), run.expect(i), add);
  }
  CheckEnvironment("run.environment", run.environment(), add);
}

void CheckCommand(const v1::JobSpec& spec, const std::string& type, const v1::TrainSpec& usual,
                  const Add& add) {
  const v1::CommandSpec& command = spec.model().command();
  const std::vector<std::string> settings = SettingsOf(spec, add);
  CheckWords("model.command.train", command.train(), settings, add);
  CheckWords("model.command.predict", command.predict(), settings, add);
  CheckWords("model.command.setup", command.setup(), settings, add);
  CheckPatterns("model.command.checkpoints", command.checkpoints(), add);
  CheckUsed(command, settings, add);
  CheckOneRank(spec, "model.command", command.setup_size() > 0, command.network(), add);
  if (command.beside_size() > 0) CheckBeside(spec, add);
  for (const auto& [field, pattern] : {std::make_pair("predictions", command.predictions()),
                                       std::make_pair("oof", command.oof())}) {
    if (!pattern.empty()) CheckPattern(absl::StrCat("model.command.", field), pattern, add);
  }
  CheckEnvironment("model.command.environment", command.environment(), add);
  if (!type.empty() && type != "classification" && type != "regression") {
    add("task.type", absl::StrCat("'", Printable(type),
                                  "' does not go with a program (model.command); use "
                                  "classification or regression"));
  }
  CheckRows(spec.data(), add);
  CheckNoTraining(spec.train(), usual, add);
  for (const auto& [field, set] :
       {std::make_pair("model.pretrained", spec.model().has_pretrained()),
        std::make_pair("from", !spec.from().empty()),
        std::make_pair("preset", !spec.preset().empty()),
        std::make_pair("budget.subsample", spec.budget().subsample())}) {
    if (set) add(field, "has no meaning for a program (model.command); leave it out");
  }
}

}  // namespace traind
