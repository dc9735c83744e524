#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/data/text/added_tokens.h"
#include "common/data/text/text_pieces.h"
#include "common/data/text/tokenizer.h"

namespace traind {

// Encodes as the `tokenizers` library does with a tokenizer.json of BERT's kind (WordPiece), of
// RoBERTa's and ModernBERT's (byte-level BPE) or of DeBERTa v3's (Unigram): the special tokens
// around the text are in the ids.
// Threads: immutable.
class JsonTokenizer final : public Tokenizer {
 public:
  // InvalidArgument: it is no such file, or names what is not supported.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Parse(absl::string_view json);

  int32_t size() const override { return size_; }
  void Encode(absl::string_view text, std::vector<int32_t>& ids) const override;
  std::string Serialize() const override { return json_; }

 private:
  friend class JsonTokenizerReader;
  explicit JsonTokenizer(absl::string_view json) : json_(json) {}

  const std::string json_;
  int32_t size_ = 0;
  std::unique_ptr<TextPieces> pieces_;
  AddedTokens raw_, normalized_;         // found in the text as it is, and once it is normalized
  std::vector<int32_t> before_, after_;  // special tokens around a text
};

// Returns the tokenizer.json of BERT's vocab.txt, one piece a line. settings: a JSON object with
// do_lower_case, strip_accents and tokenize_chinese_chars; each may be missing.
// InvalidArgument: the vocabulary lacks one of BERT's special tokens.
absl::StatusOr<std::string> TokenizerOfVocabulary(absl::string_view vocabulary,
                                                  absl::string_view settings);

}  // namespace traind
