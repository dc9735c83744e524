#include "tests/worker/prepare/sentencepiece_reference.h"

#include <sentencepiece_processor.h>

#include <stdexcept>

namespace traind {

std::vector<int> ReferenceIds(const std::string& model, const std::string& text) {
  sentencepiece::SentencePieceProcessor processor;
  std::vector<int> ids;
  if (!processor.LoadFromSerializedProto(model).ok() || !processor.Encode(text, &ids).ok()) {
    throw std::runtime_error("SentencePiece refuses");
  }
  return ids;
}

}  // namespace traind
