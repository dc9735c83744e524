// SentencePiece's own training and encoding, in a translation unit of their own: see
// worker/prepare/sentencepiece_library.h.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace traind {

// Throws std::runtime_error if `model` is not a model.
std::vector<int> ReferenceIds(const std::string& model, const std::string& text);
// Encodes many texts with a model that is read once.
std::vector<std::vector<int>> ReferenceIds(const std::string& model,
                                           const std::vector<std::string>& texts);

// Returns a model that the library itself has trained. Throws std::runtime_error with its
// message.
std::string ReferenceModel(const std::vector<std::string>& texts,
                           const std::map<std::string, std::string>& options);

}  // namespace traind
