// "Did you mean".
#pragma once

#include <absl/strings/string_view.h>

#include <string>
#include <vector>

namespace traind {

// The candidate that `word` most likely stands for (a slip of one letter in
// three at most; letter case does not count), or "" where none is near.
std::string ClosestWord(absl::string_view word, const std::vector<std::string>& candidates);

// "; did you mean 'x'?", or "".
std::string DidYouMean(absl::string_view word, const std::vector<std::string>& candidates);

}  // namespace traind
