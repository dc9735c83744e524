// Cuts a normalized text into SentencePiece's pieces.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <memory>
#include <vector>

#include "common/data/text/sentencepiece_model.h"
#include "common/data/text/sentencepiece_normalizer.h"

namespace traind {

// A part of the text and its piece; the unknown piece if it is not one.
struct TextPart {
  absl::string_view text;
  int32_t piece = -1;
};

// Cuts texts by one model.
// Threads: immutable.
class SentencepiecePieces {
 public:
  virtual ~SentencepiecePieces() = default;
  // Appends the parts of a text in order.
  virtual void Cut(absl::string_view normalized, std::vector<TextPart>& parts) const = 0;
};

// For both functions, the model and the normalizer outlive the result. InvalidArgument: a piece
// occurs twice.
// Unigram: the most likely pieces (Kudo 2018), by Viterbi in the arithmetic of SentencePiece's
// EncodeOptimized.
absl::StatusOr<std::unique_ptr<SentencepiecePieces>> UnigramPieces(const SentencepieceModel& model);
// BPE: neighbours are joined, the best score first, the leftmost of equals (Sennrich et al. 2016).
absl::StatusOr<std::unique_ptr<SentencepiecePieces>> BpePieces(
    const SentencepieceModel& model, const SentencepieceNormalizer& normalizer);

}  // namespace traind
