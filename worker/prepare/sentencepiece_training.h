// Learning SentencePiece models.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <functional>
#include <string>

namespace traind {

// Texts of that many bytes are enough to learn pieces from, and are learnt in a third of a second.
inline constexpr int64_t kSentencepieceBytes = 1 << 18;

// A unigram model's bytes, of at most `vocabulary` pieces, with SentencePiece's own
// normalisation (nmt_nfkc). next: gives a text, or false when there are no more; those
// beyond kSentencepieceBytes are not asked for. The same for the same texts.
// InvalidArgument: there is too little to learn from.
absl::StatusOr<std::string> TrainSentencepiece(const std::function<bool(std::string& text)>& next,
                                               int64_t vocabulary);

}  // namespace traind
