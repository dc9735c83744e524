#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/data/text/sentencepiece_model.h"
#include "common/data/text/sentencepiece_normalizer.h"
#include "common/data/text/sentencepiece_pieces.h"
#include "common/data/text/tokenizer.h"

namespace traind {

// Encodes like SentencePiece's own tools (Kudo, Richardson 2018) with one of its models, unigram or
// BPE, with or without byte fallback. It does not use that library, which links Protobuf, because a
// Rank must not.
// Threads: immutable.
class SentencepieceTokenizer final : public Tokenizer {
 public:
  // model: the bytes of a .model file. InvalidArgument: it is not one, or is not supported.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Parse(absl::string_view model);

  int32_t size() const override { return static_cast<int32_t>(model_->pieces.size()); }
  void Encode(absl::string_view text, std::vector<int32_t>& ids) const override;
  std::string Serialize() const override { return model_->bytes; }

 private:
  SentencepieceTokenizer(std::unique_ptr<const SentencepieceModel> model,
                         SentencepieceNormalizer normalizer)
      : model_(std::move(model)), normalizer_(std::move(normalizer)) {}

  const std::unique_ptr<const SentencepieceModel> model_;
  const SentencepieceNormalizer normalizer_;
  std::unique_ptr<SentencepiecePieces> pieces_;
};

}  // namespace traind
