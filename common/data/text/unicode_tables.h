// Tables of what the `tokenizers` library does to each character, in ascending order.
#pragma once

#include <cstddef>
#include <cstdint>

namespace traind {

struct CharacterRange {
  uint32_t first, last;
};
// Each step-th character from first to last becomes `to` and what follows it in the same steps.
struct CharacterRun {
  uint32_t first, last, step, to;
};
struct CharacterParts {
  uint32_t from, to[3];  // unused ones are 0
};

// Removed by BERT's cleaning, which keeps tabs and line ends.
extern const CharacterRange kDroppedByBert[];
extern const size_t kDroppedByBertCount;
// Words of their own for BERT.
extern const CharacterRange kPunctuation[];
extern const size_t kPunctuationCount;
// \p{L}, \p{N} and \s of the regular expressions.
extern const CharacterRange kLetters[], kNumbers[], kBlanks[];
extern const size_t kLettersCount, kNumbersCount, kBlanksCount;
// Removed where accents are, and what becomes of the others; without Hangul, which follows a rule.
extern const CharacterRange kAccents[];
extern const size_t kAccentsCount;
extern const CharacterRun kWithoutAccents[];
extern const size_t kWithoutAccentsCount;
extern const CharacterParts kSeveralWithoutAccents[];
extern const size_t kSeveralWithoutAccentsCount;
// Lower-case letters; U+0130 becomes two characters and is not here.
extern const CharacterRun kLower[];
extern const size_t kLowerCount;

}  // namespace traind
