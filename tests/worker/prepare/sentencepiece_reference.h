// SentencePiece's own training and encoding, apart: see worker/prepare/sentencepiece_library.h.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace traind {

// Throws std::runtime_error where the model is none.
std::vector<int> ReferenceIds(const std::string& model, const std::string& text);
// Of many texts, by a model that is read once.
std::vector<std::vector<int>> ReferenceIds(const std::string& model,
                                           const std::vector<std::string>& texts);

// A model of the library's own training. Throws std::runtime_error with what it says.
std::string ReferenceModel(const std::vector<std::string>& texts,
                           const std::map<std::string, std::string>& options);

}  // namespace traind
