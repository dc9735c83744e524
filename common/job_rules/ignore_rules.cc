#include "common/job_rules/ignore_rules.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>
#include <fnmatch.h>

#include <cstddef>
#include <utility>

namespace traind {
namespace {

constexpr char kAnyFolders[] = "**";

// Whether the parts of a path from `at` on match those of a pattern from `from` on.
bool Matches(const std::vector<std::string>& pattern, size_t from,
             const std::vector<std::string>& path, size_t at) {
  if (from == pattern.size()) return at == path.size();
  if (pattern[from] == kAnyFolders) {
    // At the end it means all that lies below.
    if (from + 1 == pattern.size()) return at < path.size();
    for (size_t next = at; next <= path.size(); ++next) {
      if (Matches(pattern, from + 1, path, next)) return true;
    }
    return false;
  }
  return at < path.size() && fnmatch(pattern[from].c_str(), path[at].c_str(), 0) == 0 &&
         Matches(pattern, from + 1, path, at + 1);
}

}  // namespace

IgnoreRules::IgnoreRules(absl::string_view text) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripTrailingAsciiWhitespace(line);
    if (absl::StartsWith(line, "#")) continue;
    Rule rule;
    rule.takes_back = absl::ConsumePrefix(&line, "!");
    rule.folders_alone = absl::ConsumeSuffix(&line, "/");
    const bool in_place = absl::StrContains(line, '/');
    absl::ConsumePrefix(&line, "/");
    if (line.empty()) continue;
    rule.parts = absl::StrSplit(line, '/');
    if (!in_place) rule.parts.insert(rule.parts.begin(), kAnyFolders);
    rules_.push_back(std::move(rule));
  }
}

bool IgnoreRules::Ignores(absl::string_view path, bool is_folder) const {
  if (rules_.empty()) return false;
  const std::vector<std::string> parts = absl::StrSplit(path, '/');
  for (auto rule = rules_.rbegin(); rule != rules_.rend(); ++rule) {
    if (rule->folders_alone && !is_folder) continue;
    if (Matches(rule->parts, 0, parts, 0)) return !rule->takes_back;
  }
  return false;
}

}  // namespace traind
