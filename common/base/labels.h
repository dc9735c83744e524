// Labels of Jobs and Workers: names with values.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <map>
#include <string>
#include <vector>

namespace traind {

// So many labels a Worker may have, and a Job may ask for.
inline constexpr int kMostWorkerLabels = 16;

// Whether the text is of letters, digits and the characters of `also`, begins with a letter or
// digit, and is not longer than that.
bool IsNameText(absl::string_view text, size_t longest, absl::string_view also);

// Returns what is wrong with a label, to stand behind its name: "has a value of more than 255
// bytes". Empty: nothing.
std::string LabelMistake(absl::string_view key, absl::string_view value);

// Reads "rack=a" from each text. InvalidArgument: a text is no label, a name is there twice, or
// there are more than kMostWorkerLabels.
absl::StatusOr<std::map<std::string, std::string>> ParseLabels(
    const std::vector<std::string>& texts);

}  // namespace traind
