#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <string>
#include <vector>

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
  // The replacement of the text's beginning, and how many bytes it replaces.
  struct Prefix {
    absl::string_view becomes;
    size_t bytes = 0;
  };
  explicit SentencepieceNormalizer(const SentencepieceModel& model) : model_(model) {}
  absl::Status ParseCharacterMap(absl::string_view map);
  Prefix Normalized(absl::string_view text) const;

  const SentencepieceModel& model_;
  PieceTrie symbols_;                // user-defined ones
  std::vector<uint32_t> map_units_;  // double-array trie of the replaced texts
  std::string map_texts_;            // their replacements, each ending with a zero byte
};

// Returns the bytes of the text's first character. REQUIRES: text is not empty.
size_t CharacterLength(absl::string_view text);

}  // namespace traind
