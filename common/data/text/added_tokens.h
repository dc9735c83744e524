// Finds tokens that are taken out of a text before it is cut, such as [MASK].
#pragma once

#include <absl/strings/string_view.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/data/text/piece_trie.h"

namespace traind {

struct AddedToken {
  std::string text;
  int32_t id = 0;
  bool single_word = false;  // not inside a word
  bool takes_blanks_before = false, takes_blanks_after = false;
};

// Threads: confined to one while tokens are added, then safe to share.
class AddedTokens {
 public:
  void Add(AddedToken token);
  // Calls text(part) for what lies between the tokens and token(id) for each of them, in order. Of
  // tokens that begin at the same place the longest is taken.
  void Split(absl::string_view whole, const std::function<void(absl::string_view)>& text,
             const std::function<void(int32_t)>& token) const;

 private:
  PieceTrie trie_;  // indices in tokens_
  std::vector<AddedToken> tokens_;
};

}  // namespace traind
