#include "common/data/text/sentencepiece_tokenizer.h"

#include <utility>

#include "common/base/status_macros.h"

namespace traind {

void SentencepieceTokenizer::Encode(absl::string_view raw, std::vector<int32_t>& ids) const {
  const std::string text = normalizer_.Normalize(raw);
  std::vector<TextPart> parts;
  pieces_->Cut(text, parts);
  bool after_unknown = false;
  for (const TextPart& part : parts) {
    const bool unknown = part.piece == model_->unknown;
    if (unknown && model_->byte_fallback) {
      for (const char byte : part.text) {
        ids.push_back(model_->byte_pieces[static_cast<unsigned char>(byte)]);
      }
    } else if (!unknown || !after_unknown) {  // a run of unknown parts becomes one id
      ids.push_back(part.piece);
    }
    after_unknown = unknown;
  }
}

absl::StatusOr<std::unique_ptr<Tokenizer>> SentencepieceTokenizer::Parse(absl::string_view file) {
  ASSIGN_OR_RETURN(std::unique_ptr<const SentencepieceModel> model,
                   SentencepieceModel::Parse(file));
  ASSIGN_OR_RETURN(SentencepieceNormalizer normalizer, SentencepieceNormalizer::Create(*model));
  std::unique_ptr<SentencepieceTokenizer> tokenizer(
      new SentencepieceTokenizer(std::move(model), std::move(normalizer)));
  const SentencepieceModel& kept = *tokenizer->model_;
  if (kept.kind == SentencepieceModel::Kind::kBpe) {
    ASSIGN_OR_RETURN(tokenizer->pieces_, BpePieces(kept, tokenizer->normalizer_));
  } else {
    ASSIGN_OR_RETURN(tokenizer->pieces_, UnigramPieces(kept));
  }
  return std::unique_ptr<Tokenizer>(std::move(tokenizer));
}

}  // namespace traind
