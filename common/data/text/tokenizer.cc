#include "common/data/text/tokenizer.h"

#include <absl/strings/match.h>

#include "common/data/text/json_tokenizer.h"
#include "common/data/text/sentencepiece_tokenizer.h"
#include "common/data/text/word_tokenizer.h"

namespace traind {

absl::StatusOr<std::unique_ptr<Tokenizer>> ParseTokenizer(absl::string_view bytes) {
  if (absl::StartsWith(bytes, WordTokenizer::kMagic)) return WordTokenizer::Parse(bytes);
  if (absl::StartsWith(bytes, "{")) return JsonTokenizer::Parse(bytes);
  return SentencepieceTokenizer::Parse(bytes);
}

void KeepBothEnds(size_t begin, int64_t most, std::vector<int32_t>& ids) {
  const auto count = static_cast<int64_t>(ids.size() - begin);
  if (count <= most) return;
  const auto first = ids.begin() + static_cast<int64_t>(begin);
  ids.erase(first + (most + 1) / 2, ids.end() - most / 2);
}

}  // namespace traind
