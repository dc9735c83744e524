#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/text/tokenizer.h"

namespace traind {

// Encodes as SentencePiece's own tools do (Kudo, Richardson 2018), from one of its models:
// normalisation by the model's own character map, then the most likely pieces of a unigram
// model. Without that library, which links Protobuf: a Rank must not.
class SentencepieceTokenizer final : public Tokenizer {
 public:
  // model: of a .model file. InvalidArgument: it is none, or one that this cannot encode
  // by: not unigram, with bytes or user-defined symbols.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Parse(absl::string_view model);

  int32_t size() const override { return static_cast<int32_t>(scores_.size()); }
  void Encode(absl::string_view text, std::vector<int32_t>& ids) const override;
  std::string Serialize() const override { return model_; }

 private:
  // Of a byte trie over the pieces: the child by (node, byte), the piece that ends there.
  struct Trie {
    absl::flat_hash_map<uint64_t, int32_t> children;
    std::vector<int32_t> piece{-1};  // [node]; the root is 0
  };

  SentencepieceTokenizer() = default;
  absl::Status ParsePiece(absl::string_view piece);
  absl::Status ParseTrainer(absl::string_view trainer);
  absl::Status ParseNormalizer(absl::string_view normalizer);
  absl::Status ParseCharacterMap(absl::string_view map);
  // What the text's beginning becomes, and how many bytes of it that is.
  struct Prefix {
    absl::string_view becomes;
    size_t bytes = 0;
  };
  Prefix Normalized(absl::string_view text) const;
  std::string Normalize(absl::string_view text) const;

  std::string model_;
  std::vector<float> scores_;  // [piece]
  float least_score_ = 0;
  int32_t unknown_ = -1;
  Trie trie_;
  bool dummy_prefix_ = true, fewer_blanks_ = true, escape_blanks_ = true, suffix_ = false;
  std::vector<uint32_t> map_units_;  // double-array trie of what is replaced
  std::string map_texts_;            // by what: texts that end with a zero byte
};

}  // namespace traind
