// Texts as inputs of a linear model: a bag of words of fixed width.
#pragma once

#include <absl/strings/string_view.h>
#include <absl/types/span.h>

namespace traind {

// Feature hashing (Weinberger et al. 2009). A hash that is the same on every machine assigns each
// word (ForEachWord) to one of cells.size() cells, with a sign. With the sums s of these signs, a
// cell is sign(s) x log(1 + |s|), divided by the cells' L2 norm. A text without words gives zeros.
void HashWords(absl::string_view text, absl::Span<float> cells);

}  // namespace traind
