#include "worker/prepare/sentencepiece_training.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <vector>

#include "worker/prepare/sentencepiece_library.h"

namespace traind {
namespace {

// Longer sentences are left out by default, and make the search for pieces slow.
constexpr size_t kLongestSentence = 1000;

// Splits a text into parts, at blanks and line ends if there are any.
void AddSentences(absl::string_view text, std::vector<std::string>& sentences) {
  while (!text.empty()) {
    size_t length = std::min(text.find('\n'), text.size());
    if (length > kLongestSentence) {
      length = text.substr(0, kLongestSentence).rfind(' ');
      if (length == absl::string_view::npos || length == 0) length = kLongestSentence;
      // Do not split within a character.
      while (length < text.size() && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80) {
        ++length;
      }
    }
    if (length > 0) sentences.emplace_back(text.substr(0, length));
    text.remove_prefix(std::min(text.size(), std::max<size_t>(length, 1)));
  }
}

}  // namespace

absl::StatusOr<std::string> TrainSentencepiece(const std::function<bool(std::string& text)>& next,
                                               int64_t vocabulary) {
  std::vector<std::string> sentences;
  std::string text;
  int64_t bytes = 0;
  while (bytes < kSentencepieceBytes && next(text)) {
    bytes += static_cast<int64_t>(text.size());
    AddSentences(text, sentences);
  }
  if (sentences.empty()) {
    return absl::InvalidArgumentError("the texts are empty, so there are no pieces to learn");
  }
  std::string error;
  std::string model = TrainPieces(sentences, static_cast<long>(vocabulary), error);
  if (model.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("SentencePiece cannot learn from the texts: ", error));
  }
  return model;
}

}  // namespace traind
