// Classes and forms of Unicode's characters, as the `tokenizers` library has them.
#pragma once

#include <absl/strings/string_view.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace traind {

struct Character {
  uint32_t value = 0;
  size_t bytes = 1;
};
// Returns the first character of a UTF-8 text. A byte that does not begin a valid one counts as
// U+FFFD. REQUIRES: text is not empty.
Character FirstCharacter(absl::string_view text);
void AppendCharacter(uint32_t c, std::string& text);

bool IsDroppedByBert(uint32_t c);
bool IsBertPunctuation(uint32_t c);
bool IsLetter(uint32_t c);
bool IsNumber(uint32_t c);
bool IsBlank(uint32_t c);
// Whether it is in one of the blocks that BERT reads character by character.
bool IsHan(uint32_t c);

// Appends the lower-case form.
void AppendLower(uint32_t c, std::string& text);
// Appends the canonical decomposition without nonspacing marks; nothing for such a mark.
void AppendWithoutAccents(uint32_t c, std::string& text);

}  // namespace traind
