// Splits texts into words.
#pragma once

#include <absl/strings/string_view.h>

#include <functional>

namespace traind {

// Calls use(word) for each word and each punctuation mark of a UTF-8 text, in order. A word is a
// run of letters, digits and inner apostrophes; Latin, Greek and Cyrillic letters are lowered.
// Scripts without blanks (Han, Kana, Hangul syllables) give a word per character. The view is valid
// during the call.
void ForEachWord(absl::string_view text, const std::function<void(absl::string_view)>& use);

}  // namespace traind
