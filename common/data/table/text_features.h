// Chooses and makes the numeric features of a column of texts.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/data/table/text_feature.h"

namespace traind {

// Returns the first numbers that stand in a text, NaN where there are fewer: 999 and 58.16 of
// "999 CC, 58.16 bhp". Read are digits with commas between thousands, a point and a sign; K, M, G,
// B and T behind them, the multiples of bytes and hertz, and words such as million and lakh
// multiply. Letters may stand before a number or behind it (C85, 4GB), and an x between two
// (1920x1080); words of more changes than that (3f2a) are codes, which have none.
std::array<float, kTextNumbers> TextNumbers(absl::string_view text);

// Calls use(word) for each word of a text without its digits, in lower case: of "4GB iPhone5" gb
// and iphone. Codes, as above, and words longer than 40 bytes are left out. The view is valid
// during the call.
void TextWords(absl::string_view text, const std::function<void(absl::string_view)>& use);

// A word, and the number of rows whose text has it.
struct FrequentWord {
  std::string word;
  int64_t rows = 0;
};

// The numbers and the length that are worth a feature in a column whose distinct values stand in
// `rows` rows each. Numbers that just number the rows, or what they name, are not.
std::vector<TextFeature> PlainTextFeatures(const std::vector<absl::string_view>& values,
                                           absl::Span<const int64_t> rows);
// The words that are worth one, most frequent first and at most 32: those of several values, that
// stand in neither few nor nearly all of `all` rows, which include those with a missing text. Of
// words that stand in the same texts there is one.
std::vector<FrequentWord> FrequentWords(const std::vector<absl::string_view>& values,
                                        absl::Span<const int64_t> rows, int64_t all);

// Returns how many words of each column become features: the most frequent ones of the table, as
// far as its limits go. columns: the words of each, as FrequentWords returns them; rows: the
// table's.
std::vector<size_t> WordsToTake(const std::vector<std::vector<FrequentWord>>& columns,
                                int64_t rows);

// Makes the parts of a column's texts. Threads: immutable.
class TextFeatureReader {
 public:
  explicit TextFeatureReader(std::vector<TextFeature> parts);

  const std::vector<TextFeature>& parts() const { return parts_; }
  // Sets out[part]. An empty text is a missing one.
  void Read(absl::string_view text, float* out) const;

 private:
  std::vector<TextFeature> parts_;
  bool numbers_ = false;
  absl::flat_hash_map<std::string, size_t> words_;  // to the part
};

}  // namespace traind
