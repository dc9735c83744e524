// Tables of which characters the `tokenizers` library takes together, in ascending order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/data/text/unicode_tables.h"

namespace traind {

// Keep a token that has to be a word of its own from being one.
extern const CharacterRange kOfWords[];
extern const size_t kOfWordsCount;
// Belong to the character before them, unless that is a control.
extern const CharacterRange kJoining[];
extern const size_t kJoiningCount;
// Stand alone, below U+10000.
extern const CharacterRange kControls[];
extern const size_t kControlsCount;
// Belong to the character behind them, unless that is a control.
extern const CharacterRange kPrepended[];
extern const size_t kPrependedCount;

// The canonical decomposition, as far as it goes, without Hangul; unused ones are 0.
struct Decomposition {
  uint32_t from, to[4];
};
extern const Decomposition kDecompositions[];
extern const size_t kDecompositionsCount;
// By the first character, then by the second.
struct Composition {
  uint32_t first, second, to;
};
extern const Composition kCompositions[];
extern const size_t kCompositionsCount;
// Marks, with their canonical combining class.
struct MarkRange {
  uint32_t first, last, combining;
};
extern const MarkRange kMarks[];
extern const size_t kMarksCount;

}  // namespace traind
