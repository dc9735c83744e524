// Texts of a table's rows as packed tokens.
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

// Ids that samples have: the tokenizer's and one more, which stands for a text without
// tokens.
int64_t VocabularyOf(const Tokenizer& tokenizer);

// Tokens of texts that were tokenized once. Each sample has one to max_tokens of them
// (KeepBothEnds).
// Threads: safe.
class TextSource final : public MediaSource {
 public:
  TextSource(const Tokenizer& tokenizer, int64_t max_tokens)
      : tokenizer_(tokenizer), max_tokens_(max_tokens) {}
  static std::shared_ptr<const TextSource> OfTable(const Table& table, Split split,
                                                   const Tokenizer& tokenizer, int64_t max_tokens);

  // One more row. REQUIRES: the tokenizer still lives.
  void Add(absl::string_view text);
  // Ignores what is asked about training: nothing is drawn.
  absl::Status Load(const MediaRequest& request, MediaBatch& out) const override;

 private:
  const Tokenizer& tokenizer_;  // of Add() alone
  const int64_t max_tokens_;
  std::vector<int32_t> tokens_;
  std::vector<size_t> ends_;  // [rows]
};

}  // namespace traind
