// A media source of tokenized texts.
#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/data/table/table.h"
#include "common/data/text/tokenizer.h"
#include "proto/plain/job.h"
#include "worker/data/media_source.h"

namespace traind {

// Words, learnt from those rows of the training file and nothing else.
std::unique_ptr<Tokenizer> LearnTokenizer(const Table& table, const plain::TextSpec& spec,
                                          absl::Span<const int32_t> training_rows);

// The number of token ids that samples may have: the tokenizer's plus one, which stands for a
// text without tokens.
int64_t VocabularyOf(const Tokenizer& tokenizer);

// Holds texts that were tokenized once. Each sample has 1 to max_tokens tokens (see
// KeepBothEnds).
// Threads: Load() is safe; Add() must not run beside other calls. The tokenizer must outlive
// all calls of Add(). Errors: OutOfRange for a row that was not added.
class TextSource final : public MediaSource {
 public:
  TextSource(const Tokenizer& tokenizer, int64_t max_tokens)
      : tokenizer_(tokenizer), max_tokens_(max_tokens) {}
  static std::shared_ptr<const TextSource> OfTable(const Table& table, Split split,
                                                   const Tokenizer& tokenizer, int64_t max_tokens);

  // Appends a row. REQUIRES: the tokenizer still lives.
  void Add(absl::string_view text);
  // Ignores request.training, because texts are not augmented.
  absl::Status Load(const MediaRequest& request, MediaBatch& out) const override;

 private:
  const Tokenizer& tokenizer_;  // used by Add() only
  const int64_t max_tokens_;
  std::vector<int32_t> tokens_;
  std::vector<size_t> ends_;  // [rows]
};

}  // namespace traind
