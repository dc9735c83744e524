// SentencePiece behind plain types: its headers define names of Abseil's anew, so that no
// translation unit can see both.
#pragma once

#include <string>
#include <vector>

namespace traind {

// A unigram model's bytes, of `vocabulary` pieces at most; empty: `error` says why.
std::string TrainPieces(const std::vector<std::string>& sentences, long vocabulary,
                        std::string& error);

}  // namespace traind
