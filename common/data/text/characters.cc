#include "common/data/text/characters.h"

#include <algorithm>

#include "common/data/text/character_ranges.h"
#include "common/data/text/unicode_tables.h"

namespace traind {
namespace {

// Returns c itself where no run has it.
uint32_t Mapped(const CharacterRun* runs, size_t count, uint32_t c) {
  const CharacterRun* const run = EntryBefore(runs, count, c);
  if (run == nullptr || c > run->last || (c - run->first) % run->step != 0) return c;
  return run->to + (c - run->first);
}

bool Within(uint32_t c, uint32_t first, uint32_t last) { return c >= first && c <= last; }

// Hangul syllables are made of two or three letters by rule (Unicode, section 3.12).
void AppendHangul(uint32_t c, std::string& text) {
  constexpr uint32_t kSyllables = 0xac00, kVowels = 21, kTails = 28;
  const uint32_t index = c - kSyllables;
  AppendCharacter(0x1100 + index / (kVowels * kTails), text);
  AppendCharacter(0x1161 + index / kTails % kVowels, text);
  if (index % kTails != 0) AppendCharacter(0x11a7 + index % kTails, text);
}

}  // namespace

Character FirstCharacter(absl::string_view text) {
  constexpr Character kNone = {0xfffd, 1};
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t length = first < 0xc2   ? 1
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                        : first < 0xf5 ? 4
                                       : 1;
  if (length == 1 || text.size() < length) return kNone;
  uint32_t value = first & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return kNone;
    value = value << 6 | (byte(i) & 0x3fu);
  }
  return {value, length};
}

void AppendCharacter(uint32_t c, std::string& text) {
  const auto put = [&text](uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xc0 | c >> 6);
  } else {
    if (c < 0x10000) {
      put(0xe0 | c >> 12);
    } else {
      put(0xf0 | c >> 18);
      put(0x80 | (c >> 12 & 0x3f));
    }
    put(0x80 | (c >> 6 & 0x3f));
  }
  put(0x80 | (c & 0x3f));
}

bool IsDroppedByBert(uint32_t c) {
  return c == 0 || IsAmong(kDroppedByBert, kDroppedByBertCount, c);
}
bool IsBertPunctuation(uint32_t c) { return IsAmong(kPunctuation, kPunctuationCount, c); }
bool IsLetter(uint32_t c) { return IsAmong(kLetters, kLettersCount, c); }
bool IsNumber(uint32_t c) { return IsAmong(kNumbers, kNumbersCount, c); }
bool IsBlank(uint32_t c) { return IsAmong(kBlanks, kBlanksCount, c); }

bool IsHan(uint32_t c) {
  if (c < 0x3400) return false;
  return Within(c, 0x4e00, 0x9fff) || Within(c, 0x3400, 0x4dbf) || Within(c, 0x20000, 0x2a6df) ||
         Within(c, 0x2a700, 0x2b73f) || Within(c, 0x2b740, 0x2b81f) ||
         Within(c, 0x2b920, 0x2ceaf) || Within(c, 0xf900, 0xfaff) || Within(c, 0x2f800, 0x2fa1f);
}

void AppendLower(uint32_t c, std::string& text) {
  constexpr uint32_t kDottedI = 0x130, kDot = 0x307;
  if (c == kDottedI) {
    text.push_back('i');
    return AppendCharacter(kDot, text);
  }
  AppendCharacter(Mapped(kLower, kLowerCount, c), text);
}

void AppendWithoutAccents(uint32_t c, std::string& text) {
  if (c < 0x80) return text.push_back(static_cast<char>(c));
  if (IsAmong(kAccents, kAccentsCount, c)) return;
  if (Within(c, 0xac00, 0xd7a3)) return AppendHangul(c, text);
  const CharacterParts* const end = kSeveralWithoutAccents + kSeveralWithoutAccentsCount;
  const CharacterParts* const parts = std::lower_bound(
      kSeveralWithoutAccents, end, c,
      [](const CharacterParts& entry, uint32_t value) { return entry.from < value; });
  if (parts == end || parts->from != c) {
    return AppendCharacter(Mapped(kWithoutAccents, kWithoutAccentsCount, c), text);
  }
  for (const uint32_t part : parts->to) {
    if (part != 0) AppendCharacter(part, text);
  }
}

}  // namespace traind
