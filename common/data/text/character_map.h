// The map of characters in a SentencePiece model ("precompiled_charsmap").
#pragma once

#include <absl/strings/string_view.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace traind {

// Replaces beginnings of texts. An empty map replaces nothing.
// Threads: immutable.
class CharacterMap {
 public:
  // Returns none where the bytes are cut.
  static std::optional<CharacterMap> Parse(absl::string_view bytes);

  // The replacement of the text's beginning, and how many bytes it replaces; 0: the map has none.
  struct Prefix {
    absl::string_view becomes;
    size_t bytes = 0;
  };
  Prefix Longest(absl::string_view text) const { return Find(text, /*longest=*/true); }
  Prefix Shortest(absl::string_view text) const { return Find(text, /*longest=*/false); }

 private:
  Prefix Find(absl::string_view text, bool longest) const;

  std::vector<uint32_t> units_;  // double-array trie of the replaced texts
  std::string texts_;            // their replacements, each ending with a zero byte
};

}  // namespace traind
