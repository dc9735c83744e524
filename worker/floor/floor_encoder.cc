#include "worker/floor/floor_encoder.h"

#include <absl/strings/string_view.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace traind {
namespace {

constexpr size_t kBuckets = 256;  // per categorical column
constexpr float kFarthest = 8;    // maximum distance from the mean, in standard deviations
// Where texts are long, words of fewer rows than these are noise.
constexpr size_t kManyCounts = 100'000;
constexpr size_t kRowsOfAWord = 5;
constexpr size_t kRowsOfAWordInFew = 2;

// FNV-1a, which gives the same bucket on every machine.
uint64_t HashOf(absl::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// The fewest rows that a word must be in, so that there are at most most_words.
size_t FewestRows(const std::vector<uint32_t>& rows_of, size_t counts, size_t most_words) {
  constexpr size_t kHighest = 1000;
  std::vector<size_t> words(kHighest + 1);  // [number of rows]
  for (const uint32_t rows : rows_of) ++words[std::min<size_t>(rows, kHighest)];
  size_t fewest = counts < kManyCounts ? kRowsOfAWordInFew : kRowsOfAWord;
  size_t left = 0;
  for (size_t rows = fewest; rows <= kHighest; ++rows) left += words[rows];
  while (left > most_words && fewest < kHighest) left -= words[fewest++];
  return fewest;
}

}  // namespace

FloorLayout::FloorLayout(const std::vector<Column>& features) {
  for (size_t f = 0; f < features.size(); ++f) {
    if (features[f].kind == ColumnKind::kNumeric) {
      numeric_.push_back(static_cast<int>(f));
      words_.push_back(features[f].text_feature.kind == TextFeature::Kind::kWord);
      continue;
    }
    Categorical column;
    column.feature = static_cast<int>(f);
    column.first = switches_;
    const size_t count = features[f].categories.size();
    for (size_t code = 0; code < count; ++code) {
      column.bucket.push_back(static_cast<int32_t>(
          count <= kBuckets ? code : HashOf(features[f].categories[code]) % kBuckets));
    }
    column.missing = static_cast<int32_t>(std::min(count, kBuckets));
    switches_ += column.missing + 1;
    categorical_.push_back(std::move(column));
  }
  first_gap_ = switches_;
  switches_ += static_cast<int32_t>(numeric_.size());
}

void FloorLayout::Switches(const FloorRows& from, absl::Span<const size_t> rows,
                           DesignRows& out) const {
  out.places = places();
  out.on.assign(rows.size() * out.places, DesignRows::kOff);
  for (size_t i = 0; i < categorical_.size(); ++i) {
    const Categorical& column = categorical_[i];
    const int32_t* const codes = from.codes[static_cast<size_t>(column.feature)];
    int32_t* to = out.on.data() + i;
    for (const size_t row : rows) {
      const int32_t code = codes[row];
      if (code >= 0) {
        *to = column.first + column.bucket[static_cast<size_t>(code)];
      } else if (code == kMissingCode) {
        *to = column.first + column.missing;
      }
      to += out.places;
    }
  }
  for (size_t i = 0; i < numeric_.size(); ++i) {
    const float* const numbers = from.numbers[static_cast<size_t>(numeric_[i])];
    int32_t* to = out.on.data() + categorical_.size() + i;
    for (const size_t row : rows) {
      if (std::isnan(numbers[row])) *to = first_gap_ + static_cast<int32_t>(i);
      to += out.places;
    }
  }
}

FloorEncoder::FloorEncoder(const FloorLayout& layout, const FloorRows& from,
                           absl::Span<const size_t> rows, size_t most_words) {
  FitNumbers(layout, from, rows);
  if (from.ngrams != nullptr) FitWords(*from.ngrams, rows, most_words);
  IndexWords();
}

FloorEncoder::FloorEncoder(State state) : state_(std::move(state)) { IndexWords(); }

void FloorEncoder::IndexWords() {
  if (state_.buckets.empty()) return;
  word_of_.assign(kNgramBuckets, -1);
  for (size_t i = 0; i < state_.buckets.size(); ++i) {
    word_of_[state_.buckets[i]] = static_cast<int32_t>(i);
  }
}

void FloorEncoder::FitNumbers(const FloorLayout& layout, const FloorRows& from,
                              absl::Span<const size_t> rows) {
  for (size_t i = 0; i < layout.numbers(); ++i) {
    const int feature = layout.numeric()[i];
    const float* const numbers = from.numbers[static_cast<size_t>(feature)];
    double sum = 0, squares = 0, count = 0;
    for (const size_t row : rows) {
      if (std::isnan(numbers[row])) continue;
      sum += numbers[row];
      count += 1;
    }
    const double mean = count > 0 ? sum / count : 0;
    for (const size_t row : rows) {
      if (std::isnan(numbers[row])) continue;
      squares += (numbers[row] - mean) * (numbers[row] - mean);
    }
    const double deviation = count > 0 ? std::sqrt(squares / count) : 0;
    state_.mean.push_back(mean);
    // A column that is constant in these rows carries no information. A rare word is as far from
    // none as a frequent one.
    const bool varies = deviation > 1e-12 * std::abs(mean);
    state_.scale.push_back(varies ? layout.word(i) ? 1 : 1 / deviation : 0);
  }
}

void FloorEncoder::FitWords(const NgramCounts& ngrams, absl::Span<const size_t> rows,
                            size_t most_words) {
  std::vector<uint32_t> rows_of(kNgramBuckets);
  size_t counts = 0;
  for (const size_t row : rows) {
    for (const NgramCount& item : ngrams[row]) ++rows_of[item.bucket];
    counts += ngrams[row].size();
  }
  const size_t fewest = FewestRows(rows_of, counts, most_words);
  for (uint32_t bucket = 0; bucket < kNgramBuckets; ++bucket) {
    if (rows_of[bucket] < fewest || state_.buckets.size() == most_words) continue;
    state_.buckets.push_back(bucket);
    const double share = (1.0 + static_cast<double>(rows.size())) / (1.0 + rows_of[bucket]);
    state_.idf.push_back(static_cast<float>(std::log(share) + 1));
  }
}

void FloorEncoder::Encode(const FloorLayout& layout, const FloorRows& from,
                          absl::Span<const size_t> rows, DesignRows& out) const {
  EncodeNumbers(layout, from, rows, out);
  layout.Switches(from, rows, out);
  out.word_ends.clear();
  out.words.clear();
  out.word_values.clear();
  if (!word_of_.empty() && from.ngrams != nullptr) EncodeWords(*from.ngrams, rows, out);
}

void FloorEncoder::EncodeNumbers(const FloorLayout& layout, const FloorRows& from,
                                 absl::Span<const size_t> rows, DesignRows& out) const {
  out.rows = rows.size();
  out.numbers = layout.numbers();
  out.values.assign(out.rows * out.numbers, 0);
  for (size_t i = 0; i < out.numbers; ++i) {
    const float* const numbers = from.numbers[static_cast<size_t>(layout.numeric()[i])];
    float* to = out.values.data() + i;
    for (const size_t row : rows) {
      if (!std::isnan(numbers[row])) {
        const auto scaled = static_cast<float>((numbers[row] - state_.mean[i]) * state_.scale[i]);
        *to = std::min(std::max(scaled, -kFarthest), kFarthest);
      }
      to += out.numbers;
    }
  }
}

void FloorEncoder::EncodeWords(const NgramCounts& ngrams, absl::Span<const size_t> rows,
                               DesignRows& out) const {
  for (const size_t row : rows) {
    const size_t begin = out.words.size();
    double squares = 0;
    for (const NgramCount& item : ngrams[row]) {
      const int32_t word = word_of_[item.bucket];
      if (word < 0) continue;
      const float value =
          (1 + std::log(static_cast<float>(item.count))) * state_.idf[static_cast<size_t>(word)];
      out.words.push_back(static_cast<uint32_t>(word));
      out.word_values.push_back(value);
      squares += static_cast<double>(value) * value;
    }
    if (squares > 0) {
      const auto factor = static_cast<float>(state_.word_scale / std::sqrt(squares));
      for (size_t i = begin; i < out.words.size(); ++i) out.word_values[i] *= factor;
    }
    out.word_ends.push_back(out.words.size());
  }
}

}  // namespace traind
