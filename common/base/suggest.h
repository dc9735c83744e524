// Suggestions for misspelt words ("did you mean").
#pragma once

#include <absl/strings/string_view.h>

#include <string>
#include <vector>

namespace traind {

// Returns the candidate that `word` most likely stands for (at most one edit per three letters;
// letter case does not count), or "" if none is near.
std::string ClosestWord(absl::string_view word, const std::vector<std::string>& candidates);

// Returns "; did you mean 'x'?", or "".
std::string DidYouMean(absl::string_view word, const std::vector<std::string>& candidates);

}  // namespace traind
