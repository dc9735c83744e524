// SentencePiece behind plain types. Its headers redefine names of Abseil, so no translation
// unit may include both.
#pragma once

#include <string>
#include <vector>

namespace traind {

// Returns the bytes of a unigram model with at most `vocabulary` pieces. If they are empty,
// `error` says why.
std::string TrainPieces(const std::vector<std::string>& sentences, long vocabulary,
                        std::string& error);

}  // namespace traind
