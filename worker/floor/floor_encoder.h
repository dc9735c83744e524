// Converts rows to the inputs of a floor's linear model.
#pragma once

#include <absl/types/span.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/data/table/table.h"
#include "common/data/text/ngrams.h"
#include "worker/floor/linear_model.h"

namespace traind {

// Rows of a table or of a later file. Each feature is numeric or categorical; its other pointer is
// null.
struct FloorRows {
  std::vector<const float*> numbers;    // [feature], of the first row
  std::vector<const int32_t*> codes;    // [feature], as Table::Codes
  const NgramCounts* ngrams = nullptr;  // [row]; null: rows have no texts
};

// The switches of a table's columns, in the same way for all folds: one for each category (more
// than 256 categories share 256 buckets), and one that is on where a value is missing.
// Threads: immutable.
class FloorLayout {
 public:
  explicit FloorLayout(const std::vector<Column>& features);

  const std::vector<int>& numeric() const { return numeric_; }  // indices of features
  size_t numbers() const { return numeric_.size(); }
  // Whether a number, by its place in numeric(), tells by 0 and 1 if a text has a word.
  bool word(size_t number) const { return words_[number]; }
  size_t switches() const { return static_cast<size_t>(switches_); }
  // Maximum number of switches that are on in a row.
  size_t places() const { return categorical_.size() + numeric_.size(); }

  // Sets out's switches of the given rows.
  void Switches(const FloorRows& from, absl::Span<const size_t> rows, DesignRows& out) const;

 private:
  struct Categorical {
    int feature = 0;
    int32_t first = 0;            // index of its first switch
    int32_t missing = 0;          // index of the indicator of missing values
    std::vector<int32_t> bucket;  // [code]
  };

  std::vector<int> numeric_;
  std::vector<bool> words_;  // [numbers()]
  std::vector<Categorical> categorical_;
  int32_t switches_ = 0;
  int32_t first_gap_ = 0;
};

// Values that are fitted on the training rows of a fold: the mean and scale of numbers, and the
// words that count (TF-IDF: (1 + log count) x idf, in each row divided by the L2 norm, times
// word_scale). Threads: immutable once fitted.
class FloorEncoder {
 public:
  struct State {
    std::vector<double> mean, scale;  // [numbers]
    std::vector<uint32_t> buckets;    // of the words that count, ascending
    std::vector<float> idf;           // [buckets.size()]
    float word_scale = 1;
  };

  // most_words: words of the fewest rows are left out until there are no more than these.
  FloorEncoder(const FloorLayout& layout, const FloorRows& from, absl::Span<const size_t> rows,
               size_t most_words);
  explicit FloorEncoder(State state);

  const State& state() const { return state_; }
  size_t words() const { return state_.buckets.size(); }
  // The larger, the less the penalty of the model's weights holds for words.
  void SetWordScale(float scale) { state_.word_scale = scale; }

  // Encodes the given rows.
  void Encode(const FloorLayout& layout, const FloorRows& from, absl::Span<const size_t> rows,
              DesignRows& out) const;

 private:
  void FitNumbers(const FloorLayout& layout, const FloorRows& from, absl::Span<const size_t> rows);
  void FitWords(const NgramCounts& ngrams, absl::Span<const size_t> rows, size_t most_words);
  void IndexWords();
  void EncodeNumbers(const FloorLayout& layout, const FloorRows& from,
                     absl::Span<const size_t> rows, DesignRows& out) const;
  void EncodeWords(const NgramCounts& ngrams, absl::Span<const size_t> rows, DesignRows& out) const;

  State state_;
  std::vector<int32_t> word_of_;  // [bucket]: index into state_.buckets, or -1; empty: no words
};

}  // namespace traind
