#include "worker/data/text_source.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include "common/data/text/word_tokenizer.h"

namespace traind {

std::unique_ptr<Tokenizer> LearnTokenizer(const Table& table, const plain::TextSpec& spec,
                                          absl::Span<const int32_t> training_rows) {
  WordCounter counter;
  for (const int32_t row : training_rows) counter.Add(table.RowText(Split::kTrain, row));
  return std::make_unique<WordTokenizer>(counter.MostFrequent(spec.vocabulary));
}

int64_t VocabularyOf(const Tokenizer& tokenizer) { return int64_t{tokenizer.size()} + 1; }

std::shared_ptr<const TextSource> TextSource::OfTable(const Table& table, Split split,
                                                      const Tokenizer& tokenizer,
                                                      int64_t max_tokens) {
  auto source = std::make_shared<TextSource>(tokenizer, max_tokens);
  const int64_t rows = table.rows(split);
  source->ends_.reserve(static_cast<size_t>(rows));
  for (int64_t row = 0; row < rows; ++row) source->Add(table.RowText(split, row));
  return source;
}

void TextSource::Add(absl::string_view text) {
  const size_t begin = tokens_.size();
  tokenizer_.Encode(text, tokens_);
  if (tokens_.size() == begin) tokens_.push_back(tokenizer_.size());
  KeepBothEnds(begin, max_tokens_, tokens_);
  ends_.push_back(tokens_.size());
}

absl::Status TextSource::Load(const MediaRequest& request, MediaBatch& out) const {
  out = MediaBatch{{}, {}, std::move(out.tokens), std::move(out.ends), {}, {}};
  out.tokens.clear();
  out.ends.clear();
  for (const int32_t row : request.rows) {
    const auto at = static_cast<size_t>(row);
    if (row < 0 || at >= ends_.size()) {
      return absl::OutOfRangeError(
          absl::StrCat("row ", row, " is beyond the ", ends_.size(), " texts"));
    }
    const size_t begin = at == 0 ? 0 : ends_[at - 1];
    out.tokens.insert(out.tokens.end(), tokens_.begin() + static_cast<int64_t>(begin),
                      tokens_.begin() + static_cast<int64_t>(ends_[at]));
    out.ends.push_back(static_cast<int32_t>(out.tokens.size()));
  }
  return absl::OkStatus();
}

}  // namespace traind
