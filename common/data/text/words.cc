#include "common/data/text/words.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/data/text/characters.h"

namespace traind {
namespace {

enum class Kind { kBlank, kLetter, kApostrophe, kMark, kAlone };

bool Within(uint32_t value, uint32_t first, uint32_t last) {
  return value >= first && value <= last;
}

Kind KindOf(uint32_t c) {
  if (c < 0x80) {
    if (c <= ' ' || c == 0x7f) return Kind::kBlank;
    if (Within(c, '0', '9') || Within(c, 'a', 'z') || Within(c, 'A', 'Z')) return Kind::kLetter;
    return c == '\'' ? Kind::kApostrophe : Kind::kMark;
  }
  if (c == 0xa0 || c == 0x85 || Within(c, 0x2000, 0x200b) || c == 0x2028 || c == 0x2029 ||
      c == 0x3000 || c == 0xfeff) {
    return Kind::kBlank;
  }
  if (c == 0x2019) return Kind::kApostrophe;
  if (Within(c, 0x80, 0xbf) && c != 0xaa && c != 0xb5 && c != 0xba) return Kind::kMark;
  if (c == 0xd7 || c == 0xf7 || Within(c, 0x2010, 0x2bff) || Within(c, 0x3001, 0x303f) ||
      Within(c, 0xff01, 0xff0f) || Within(c, 0xfff9, 0xffff) || Within(c, 0x1f000, 0x1faff)) {
    return Kind::kMark;
  }
  if (Within(c, 0x3040, 0x30ff) || Within(c, 0x3400, 0x9fff) || Within(c, 0xac00, 0xd7a3) ||
      Within(c, 0x20000, 0x3ffff)) {
    return Kind::kAlone;
  }
  return Kind::kLetter;
}

// Lowers a letter, only where the lower-case letter takes as many bytes.
uint32_t Lower(uint32_t c) {
  if (Within(c, 'A', 'Z')) return c + 32;
  if (Within(c, 0xc0, 0xde) && c != 0xd7) return c + 32;
  if (Within(c, 0x391, 0x3a9)) return c + 32;
  if (Within(c, 0x410, 0x42f)) return c + 32;
  if (Within(c, 0x400, 0x40f)) return c + 80;
  return c;
}

void Append(uint32_t c, absl::string_view bytes, std::string& word) {
  const uint32_t lower = Lower(c);
  if (lower == c) {
    word.append(bytes.data(), bytes.size());
  } else if (lower < 0x80) {
    word.push_back(static_cast<char>(lower));
  } else {
    word.push_back(static_cast<char>(0xc0 | lower >> 6));
    word.push_back(static_cast<char>(0x80 | (lower & 0x3f)));
  }
}

}  // namespace

void ForEachWord(absl::string_view text, const std::function<void(absl::string_view)>& use) {
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) use(word);
    word.clear();
  };
  while (!text.empty()) {
    const Character c = FirstCharacter(text);
    const absl::string_view bytes = text.substr(0, c.bytes);
    text.remove_prefix(c.bytes);
    Kind kind = KindOf(c.value);
    if (kind == Kind::kApostrophe) {
      const bool inner =
          !word.empty() && !text.empty() && KindOf(FirstCharacter(text).value) == Kind::kLetter;
      if (inner) {
        word.push_back('\'');
        continue;
      }
      kind = Kind::kMark;
    }
    if (kind == Kind::kLetter) {
      Append(c.value, bytes, word);
      continue;
    }
    end_word();
    if (kind != Kind::kBlank) use(bytes);
  }
  end_word();
}

}  // namespace traind
