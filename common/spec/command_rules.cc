#include "common/spec/command_rules.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <map>
#include <utility>
#include <vector>

#include "common/job_rules/program_rules.h"
#include "common/spec/field_text.h"

namespace traind {
namespace {

using Add = std::function<void(const std::string&, const std::string&)>;
using Words = google::protobuf::RepeatedPtrField<std::string>;

void CheckWords(const std::string& path, const Words& command, const Add& add) {
  if (command.size() > 0 && command[0].empty()) add(absl::StrCat(path, "[0]"), "is empty");
  for (int i = 0; i < command.size(); ++i) {
    const std::string unknown = UnknownPlaceholder(command[i]);
    if (unknown.empty()) continue;
    add(absl::StrCat(path, "[", i, "]"),
        absl::StrCat("'", Printable(unknown), "' is none of ", absl::StrJoin(kPlaceholders, ", "),
                     "; the text itself is written {", Printable(unknown), "}"));
  }
}

void CheckPattern(const std::string& path, const std::string& pattern, const Add& add) {
  const std::string problem = PatternProblem(pattern);
  if (!problem.empty()) add(path, absl::StrCat("'", Printable(pattern), "' ", problem));
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

void CheckRunProgram(const v1::RunSpec& run, const Add& add) {
  CheckWords("run.command", run.command(), add);
  for (int i = 0; i < run.expect_size(); ++i) {
    CheckPattern(absl::StrCat("run.expect[", i, "]"), run.expect(i), add);
  }
  CheckEnvironment("run.environment", run.environment(), add);
}

void CheckCommand(const v1::JobSpec& spec, const std::string& type, const v1::TrainSpec& usual,
                  const Add& add) {
  const v1::CommandSpec& command = spec.model().command();
  CheckWords("model.command.train", command.train(), add);
  CheckWords("model.command.predict", command.predict(), add);
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
        std::make_pair("search", spec.has_search()), std::make_pair("from", !spec.from().empty()),
        std::make_pair("preset", !spec.preset().empty()),
        std::make_pair("budget.subsample", spec.budget().subsample())}) {
    if (set) add(field, "has no meaning for a program (model.command); leave it out");
  }
}

}  // namespace traind
