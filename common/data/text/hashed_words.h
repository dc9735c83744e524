// Texts as a linear model takes them: a bag of words of fixed width.
#pragma once

#include <absl/strings/string_view.h>
#include <absl/types/span.h>

namespace traind {

// Feature hashing (Weinberger et al. 2009): each word (ForEachWord) falls into one of
// counts.size() cells, with a sign, by a hash of its own that is the same on every
// machine; cells are sign(s) x log(1 + |s|) of the sums s, divided by their L2 norm. All
// 0 of a text without words.
void HashWords(absl::string_view text, absl::Span<float> cells);

}  // namespace traind
