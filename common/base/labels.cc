#include "common/base/labels.h"

#include <absl/status/status.h>
#include <absl/strings/ascii.h>
#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>

#include "common/base/utf8.h"

namespace traind {

bool IsNameText(absl::string_view text, size_t longest, absl::string_view also) {
  if (text.empty() || text.size() > longest || !absl::ascii_isalnum(text[0])) return false;
  for (char c : text) {
    if (!absl::ascii_isalnum(c) && also.find(c) == also.npos) return false;
  }
  return true;
}

std::string LabelMistake(absl::string_view key, absl::string_view value) {
  if (!IsNameText(key, 63, "-_./")) {
    return "is no label name: letters, digits, - _ . and /, at most 63, the first a letter or "
           "digit";
  }
  if (value.size() > 255) return "has a value of more than 255 bytes";
  if (FirstNotUtf8(value) != value.npos) return "has a value that is not UTF-8";
  for (char c : value) {
    if (!absl::ascii_iscntrl(c)) continue;
    return absl::StrCat("'", absl::CHexEscape(value), "' contains a control character");
  }
  return "";
}

absl::StatusOr<std::map<std::string, std::string>> ParseLabels(
    const std::vector<std::string>& texts) {
  std::map<std::string, std::string> labels;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == text.npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", absl::CHexEscape(text), "' is no label: NAME=VALUE"));
    }
    const std::string key = text.substr(0, equals), value = text.substr(equals + 1);
    if (const std::string wrong = LabelMistake(key, value); !wrong.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("'", absl::CHexEscape(key), "' ", wrong));
    }
    if (!labels.emplace(key, value).second) {
      return absl::InvalidArgumentError(absl::StrCat("the label ", key, " is there twice"));
    }
  }
  if (labels.size() > kMostWorkerLabels) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are ", labels.size(), " labels; ", kMostWorkerLabels, " are the most"));
  }
  return labels;
}

}  // namespace traind
