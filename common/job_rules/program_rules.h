// Rules of a Job that runs a program (RunSpec), for those who read specs from users and for those
// who run the program.
//
// Threads: all functions are safe.
#pragma once

#include <absl/strings/string_view.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace traind {

// The kind of model that traind's parts know such a Job by.
inline constexpr char kProgramKind[] = "program";
// The kind whose programs train on the rows of `data` and answer for them (CommandSpec).
inline constexpr char kCommandKind[] = "command";

// The words that are replaced in an argument, with their braces.
inline constexpr const char* kPlaceholders[] = {"{fold}", "{folds}", "{seed}", "{epochs}"};

struct PlaceholderValues {
  int fold = 0;
  int folds = 1;
  uint64_t seed = 0;
  int64_t epochs = 0;
  std::map<std::string, std::string> settings;  // names of the user's own, without braces
};

// Returns the words in braces, such as {lr}, with their braces. A word has small letters and _
// alone. {{lr}} is the text {lr}.
std::vector<std::string> WordsInBraces(absl::string_view argument);

// Returns the first of them that is no placeholder, and none of the names `settings`; empty: there
// is none.
std::string UnknownPlaceholder(absl::string_view argument,
                               const std::vector<std::string>& settings = {});

// Whether a setting of the user may be called so: small letters and _, and no placeholder.
bool IsSettingName(absl::string_view name);

// The paths of a program's settings begin so: model.command.settings.lr.
inline constexpr char kSettingPath[] = "model.command.settings.";

// Replaces the placeholders, and {{word}} by {word}.
std::string FillPlaceholders(absl::string_view argument, const PlaceholderValues& values);

// Says what is wrong with the name of an expected file: "is an absolute path", "leads out of the
// folder"; empty: nothing.
std::string PatternProblem(absl::string_view pattern);

// Whether a path matches a name in which * stands for any characters but /, and ? for one.
bool MatchesPattern(absl::string_view path, absl::string_view pattern);

// The variables of a program's environment that traind sets begin so.
inline constexpr char kVariablePrefix[] = "TRAIND_";

}  // namespace traind
