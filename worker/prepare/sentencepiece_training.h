// Training of SentencePiece models.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <functional>
#include <string>

namespace traind {

// Number of bytes of text that are enough to learn pieces from. Training on them
// takes a third of a second.
inline constexpr int64_t kSentencepieceBytes = 1 << 18;

// Returns the bytes of a unigram model with at most `vocabulary` pieces and SentencePiece's own
// normalisation (nmt_nfkc). next: supplies a text, or returns false if there are no more; it is
// not called for texts beyond kSentencepieceBytes. The same texts give the same model.
// Errors: InvalidArgument if there is too little text to learn from.
absl::StatusOr<std::string> TrainSentencepiece(const std::function<bool(std::string& text)>& next,
                                               int64_t vocabulary);

}  // namespace traind
