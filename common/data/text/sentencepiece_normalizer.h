#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/data/text/piece_trie.h"
#include "common/data/text/sentencepiece_model.h"

namespace traind {

// What SentencePiece makes of a text before it is cut into pieces: characters replaced by the
// model's own map, blanks joined and written as U+2581; user-defined symbols stay.
// Threads: immutable.
class SentencepieceNormalizer {
 public:
  // The model outlives it. InvalidArgument: its character map is cut.
  static absl::StatusOr<SentencepieceNormalizer> Create(const SentencepieceModel& model);

  std::string Normalize(absl::string_view text) const;
  // Bytes of the user-defined symbol that the text begins with, the longest one; 0: none.
  size_t SymbolAt(absl::string_view text) const;

 private:
  // What the text's beginning becomes, and how many bytes of it that is.
  struct Prefix {
    absl::string_view becomes;
    size_t bytes = 0;
  };
  explicit SentencepieceNormalizer(const SentencepieceModel& model) : model_(model) {}
  absl::Status TakeCharacterMap(absl::string_view map);
  Prefix Normalized(absl::string_view text) const;

  const SentencepieceModel& model_;
  PieceTrie symbols_;                // user-defined ones
  std::vector<uint32_t> map_units_;  // double-array trie of what is replaced
  std::string map_texts_;            // by what: texts that end with a zero byte
};

// Bytes of the text's first character. REQUIRES: it has one.
size_t CharacterLength(absl::string_view text);

}  // namespace traind
