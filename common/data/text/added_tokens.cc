#include "common/data/text/added_tokens.h"

#include <algorithm>
#include <utility>

#include "common/data/text/characters.h"
#include "common/data/text/marks.h"

namespace traind {
namespace {

// The last character of a text, or a blank of an empty one.
uint32_t LastCharacter(absl::string_view text) {
  size_t at = text.size();
  while (at > 0 && (text[at - 1] & 0xc0) == 0x80) --at;
  return at == 0 ? ' ' : FirstCharacter(text.substr(at - 1)).value;
}

bool StandsAlone(absl::string_view before, absl::string_view after) {
  return !IsOfWord(LastCharacter(before)) &&
         (after.empty() || !IsOfWord(FirstCharacter(after).value));
}

absl::string_view WithoutBlanksAtEnd(absl::string_view text) {
  size_t end = 0;
  for (size_t at = 0; at < text.size();) {
    const Character c = FirstCharacter(text.substr(at));
    at += c.bytes;
    if (!IsBlank(c.value)) end = at;
  }
  return text.substr(0, end);
}

size_t BlanksAtBegin(absl::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const Character c = FirstCharacter(text.substr(at));
    if (!IsBlank(c.value)) break;
    at += c.bytes;
  }
  return at;
}

}  // namespace

void AddedTokens::Add(AddedToken token) {
  if (token.text.empty()) return;
  if (trie_.Add(token.text, static_cast<int32_t>(tokens_.size()))) {
    tokens_.push_back(std::move(token));
  }
}

void AddedTokens::Split(absl::string_view whole, const std::function<void(absl::string_view)>& text,
                        const std::function<void(int32_t)>& token) const {
  size_t begin = 0;  // of the part that no token has taken
  for (size_t at = 0; at < whole.size();) {
    size_t bytes = 0;
    int32_t index = -1;
    trie_.ForEachPrefix(whole.substr(at), [&](size_t length, int32_t id) {
      bytes = length;
      index = id;
    });
    if (index < 0) {
      ++at;
      continue;
    }
    const AddedToken& found = tokens_[static_cast<size_t>(index)];
    const absl::string_view after = whole.substr(at + bytes);
    if (found.single_word && !StandsAlone(whole.substr(0, at), after)) {
      at += bytes;
      continue;
    }
    // Blanks may have been taken by the token before.
    absl::string_view part = whole.substr(begin, std::max(at, begin) - begin);
    if (found.takes_blanks_before) part = WithoutBlanksAtEnd(part);
    if (!part.empty()) text(part);
    token(found.id);
    at += bytes;
    begin = at + (found.takes_blanks_after ? BlanksAtBegin(after) : 0);
  }
  if (begin < whole.size()) text(whole.substr(begin));
}

}  // namespace traind
