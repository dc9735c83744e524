#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <string>

#include "common/data/text/character_map.h"
#include "common/data/text/piece_trie.h"
#include "common/data/text/sentencepiece_model.h"

namespace traind {

// Normalizes a text as SentencePiece does before it is cut into pieces: characters are replaced by
// the model's own map, blanks are joined and written as U+2581, and user-defined symbols stay.
// Threads: immutable.
class SentencepieceNormalizer {
 public:
  // The model outlives the normalizer. InvalidArgument: its character map is cut.
  static absl::StatusOr<SentencepieceNormalizer> Create(const SentencepieceModel& model);

  std::string Normalize(absl::string_view text) const;
  // Returns the bytes of the longest user-defined symbol that the text begins with; 0: none.
  size_t SymbolAt(absl::string_view text) const;

 private:
  explicit SentencepieceNormalizer(const SentencepieceModel& model) : model_(model) {}
  CharacterMap::Prefix Normalized(absl::string_view text) const;

  const SentencepieceModel& model_;
  PieceTrie symbols_;  // user-defined ones
  CharacterMap map_;
};

// Returns the bytes of the text's first character. REQUIRES: text is not empty.
size_t CharacterLength(absl::string_view text);

}  // namespace traind
