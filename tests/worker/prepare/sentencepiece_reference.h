// SentencePiece's own encoding, apart: see worker/prepare/sentencepiece_library.h.
#pragma once

#include <string>
#include <vector>

namespace traind {

// Throws std::runtime_error where the model is none.
std::vector<int> ReferenceIds(const std::string& model, const std::string& text);

}  // namespace traind
