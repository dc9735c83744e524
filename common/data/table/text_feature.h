// A number that is made from a text, such as a name or an amount with its unit.
#pragma once

#include <absl/strings/string_view.h>

#include <string>

namespace traind {

struct TextFeature {
  enum class Kind {
    kNone,    // not made from a text
    kNumber,  // one of the numbers in the text; NaN where it has not so many
    kLength,  // its characters that are no digits; 0 where it is missing
    kWord,    // 1 if it has the word, else 0
  };
  Kind kind = Kind::kNone;
  int index = 0;     // kNumber: which of them, from 0
  std::string word;  // kWord: in lower case, without digits
};

// How many numbers of a text are looked at.
inline constexpr int kTextNumbers = 3;

// Returns "number", "number2", "length", "word.diesel"; "" for kNone. Files and names of features
// have it so.
std::string TextFeatureName(const TextFeature& part);
// The reverse. Returns false for any other name.
bool ParseTextFeature(absl::string_view name, TextFeature& part);

}  // namespace traind
