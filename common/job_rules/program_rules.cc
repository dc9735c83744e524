#include "common/job_rules/program_rules.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <fnmatch.h>

#include <algorithm>
#include <functional>
#include <iterator>

namespace traind {
namespace {

// Copies the text and calls replace with each word in braces; {{word}} stays as {word}.
std::string ForEachWord(absl::string_view text,
                        const std::function<std::string(absl::string_view)>& replace) {
  std::string copy;
  for (size_t i = 0; i < text.size(); ++i) {
    size_t end = i + 1;
    while (end < text.size() && (absl::ascii_islower(text[end]) || text[end] == '_')) ++end;
    const bool word = text[i] == '{' && end > i + 1 && end < text.size() && text[end] == '}';
    if (!word) {
      copy.push_back(text[i]);
      continue;
    }
    const absl::string_view found = text.substr(i, end + 1 - i);
    const bool escaped =
        i > 0 && text[i - 1] == '{' && end + 1 < text.size() && text[end + 1] == '}';
    if (escaped) {
      copy.pop_back();  // the first of the two braces
      copy.append(found.data(), found.size());
      i = end + 1;
    } else {
      copy.append(replace(found));
      i = end;
    }
  }
  return copy;
}

bool IsPlaceholder(absl::string_view word) {
  return std::any_of(std::begin(kPlaceholders), std::end(kPlaceholders),
                     [word](const char* known) { return word == known; });
}

}  // namespace

std::vector<std::string> WordsInBraces(absl::string_view argument) {
  std::vector<std::string> words;
  ForEachWord(argument, [&words](absl::string_view word) {
    words.emplace_back(word);
    return std::string();
  });
  return words;
}

std::string UnknownPlaceholder(absl::string_view argument,
                               const std::vector<std::string>& settings) {
  for (const std::string& word : WordsInBraces(argument)) {
    const std::string name = word.substr(1, word.size() - 2);
    const bool set = std::find(settings.begin(), settings.end(), name) != settings.end();
    if (!set && !IsPlaceholder(word)) return word;
  }
  return "";
}

bool IsSettingName(absl::string_view name) {
  const bool word = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_islower(c) || c == '_';
  });
  return word && !IsPlaceholder(absl::StrCat("{", name, "}"));
}

std::string FillPlaceholders(absl::string_view argument, const PlaceholderValues& values) {
  return ForEachWord(argument, [&values](absl::string_view word) {
    if (word == "{fold}") return absl::StrCat(values.fold);
    if (word == "{folds}") return absl::StrCat(values.folds);
    if (word == "{seed}") return absl::StrCat(values.seed);
    if (word == "{epochs}") return absl::StrCat(values.epochs);
    const auto own = values.settings.find(std::string(word.substr(1, word.size() - 2)));
    if (own != values.settings.end()) return own->second;
    return std::string(word);
  });
}

std::string PatternProblem(absl::string_view pattern) {
  if (pattern.empty()) return "is empty";
  if (pattern[0] == '/') return "is an absolute path; name a file in the program's folder";
  for (const absl::string_view part : absl::StrSplit(pattern, '/')) {
    if (part == "..") return "leads out of the program's folder";
  }
  return "";
}

bool MatchesPattern(absl::string_view path, absl::string_view pattern) {
  return fnmatch(std::string(pattern).c_str(), std::string(path).c_str(), FNM_PATHNAME) == 0;
}

}  // namespace traind
