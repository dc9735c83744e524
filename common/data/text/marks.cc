#include "common/data/text/marks.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/data/text/character_ranges.h"
#include "common/data/text/characters.h"
#include "common/data/text/mark_tables.h"

namespace traind {
namespace {

// Hangul syllables are made of two or three letters by rule (Unicode, section 3.12).
constexpr uint32_t kSyllables = 0xac00, kLeads = 0x1100, kVowels = 0x1161, kTails = 0x11a7;
constexpr uint32_t kLeadCount = 19, kVowelCount = 21, kTailCount = 28;
constexpr uint32_t kSyllableCount = kLeadCount * kVowelCount * kTailCount;

bool Within(uint32_t c, uint32_t first, uint32_t last) { return c >= first && c <= last; }
bool IsSyllable(uint32_t c) { return c >= kSyllables && c - kSyllables < kSyllableCount; }

bool IsControl(uint32_t c) { return IsAmong(kControls, kControlsCount, c); }

// Whether two neighbours are of one syllable, in any of the blocks of Hangul letters.
bool JoinAsHangul(uint32_t a, uint32_t b) {
  const auto lead = [](uint32_t c) {
    return Within(c, 0x1100, 0x115f) || Within(c, 0xa960, 0xa97c);
  };
  const auto vowel = [](uint32_t c) {
    return Within(c, 0x1160, 0x11a7) || Within(c, 0xd7b0, 0xd7c6);
  };
  const auto tail = [](uint32_t c) {
    return Within(c, 0x11a8, 0x11ff) || Within(c, 0xd7cb, 0xd7fb);
  };
  const bool open = IsSyllable(a) && (a - kSyllables) % kTailCount == 0;
  if (lead(a)) return lead(b) || vowel(b) || IsSyllable(b);
  if (vowel(a) || open) return vowel(b) || tail(b);
  return (tail(a) || IsSyllable(a)) && tail(b);
}

bool Join(uint32_t a, uint32_t b) {
  if (a == '\r') return b == '\n';
  if (IsControl(a) || IsControl(b)) return false;
  return IsAmong(kJoining, kJoiningCount, b) || IsAmong(kPrepended, kPrependedCount, a) ||
         JoinAsHangul(a, b);
}

uint32_t ClassOf(uint32_t c) {
  const MarkRange* const range = EntryBefore(kMarks, kMarksCount, c);
  return range != nullptr && c <= range->last ? range->combining : 0;
}

void Decompose(uint32_t c, std::vector<uint32_t>& to) {
  if (IsSyllable(c)) {
    const uint32_t index = c - kSyllables;
    to.push_back(kLeads + index / (kVowelCount * kTailCount));
    to.push_back(kVowels + index / kTailCount % kVowelCount);
    if (index % kTailCount != 0) to.push_back(kTails + index % kTailCount);
    return;
  }
  const Decomposition* const end = kDecompositions + kDecompositionsCount;
  const Decomposition* const found = std::lower_bound(
      kDecompositions, end, c,
      [](const Decomposition& entry, uint32_t value) { return entry.from < value; });
  if (found == end || found->from != c) return to.push_back(c);
  for (const uint32_t part : found->to) {
    if (part != 0) to.push_back(part);
  }
}

// Returns 0 where the two make no character.
uint32_t ComposedOf(uint32_t a, uint32_t b) {
  if (a >= kLeads && a - kLeads < kLeadCount && b >= kVowels && b - kVowels < kVowelCount) {
    return kSyllables + ((a - kLeads) * kVowelCount + (b - kVowels)) * kTailCount;
  }
  if (IsSyllable(a) && (a - kSyllables) % kTailCount == 0 && b > kTails &&
      b - kTails < kTailCount) {
    return a + (b - kTails);
  }
  const std::pair<uint32_t, uint32_t> wanted(a, b);
  const Composition* const end = kCompositions + kCompositionsCount;
  const Composition* const found =
      std::lower_bound(kCompositions, end, wanted, [](const Composition& entry, const auto& pair) {
        return std::make_pair(entry.first, entry.second) < pair;
      });
  return found != end && found->first == a && found->second == b ? found->to : 0;
}

// Marks between two letters stand in the order of their classes, those of one class as they stood.
void OrderMarks(std::vector<uint32_t>& text) {
  for (auto at = text.begin(); at != text.end();) {
    const auto marks = std::find_if(at, text.end(), [](uint32_t c) { return ClassOf(c) != 0; });
    at = std::find_if(marks, text.end(), [](uint32_t c) { return ClassOf(c) == 0; });
    std::stable_sort(marks, at, [](uint32_t a, uint32_t b) { return ClassOf(a) < ClassOf(b); });
  }
}

// A character that nothing stands before that keeps it from the last letter is composed with it.
void Compose(std::vector<uint32_t>& text) {
  std::vector<uint32_t> to;
  size_t letter = 0;
  bool has_letter = false;
  uint32_t before = 0;  // class of the last character behind the letter
  for (const uint32_t c : text) {
    const uint32_t of = ClassOf(c);
    const bool free = has_letter && (letter + 1 == to.size() || (before < of && before != 0));
    const uint32_t composed = free ? ComposedOf(to[letter], c) : 0;
    if (composed != 0) {
      to[letter] = composed;
      continue;
    }
    if (of == 0) {
      letter = to.size();
      has_letter = true;
    }
    before = of;
    to.push_back(c);
  }
  text = std::move(to);
}

}  // namespace

bool IsOfWord(uint32_t c) { return IsAmong(kOfWords, kOfWordsCount, c); }

// The rules about emoji, flags and Indic conjuncts make graphemes of six bytes and more alone.
size_t FirstGrapheme(absl::string_view text) {
  Character last = FirstCharacter(text);
  size_t bytes = last.bytes;
  while (bytes < text.size()) {
    const Character next = FirstCharacter(text.substr(bytes));
    if (!Join(last.value, next.value)) break;
    bytes += next.bytes;
    last = next;
  }
  return bytes;
}

std::string Composed(absl::string_view text) {
  const bool plain = std::all_of(text.begin(), text.end(),
                                 [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (plain) return std::string(text);
  std::vector<uint32_t> characters;
  while (!text.empty()) {
    const Character c = FirstCharacter(text);
    text.remove_prefix(c.bytes);
    Decompose(c.value, characters);
  }
  OrderMarks(characters);
  Compose(characters);
  std::string result;
  for (const uint32_t c : characters) AppendCharacter(c, result);
  return result;
}

}  // namespace traind
