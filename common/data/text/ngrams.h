// Texts as inputs of a linear model: counts of words and of pairs of adjacent words.
#pragma once

#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace traind {

// A word, or a pair of adjacent words, is known by its bucket, a hash that is the same on every
// machine. Two of them rarely share a bucket.
inline constexpr uint32_t kNgramBuckets = 1 << 20;

// How often a bucket occurs in a text; counts end at 4095.
struct NgramCount {
  uint32_t bucket : 20;
  uint32_t count : 12;
};

// The counts of texts, one text after the other. Threads: confined to one.
class NgramCounts {
 public:
  // Adds a text. Of a text longer than `most_bytes` only both ends are read, half of them each.
  void Add(absl::string_view text, size_t most_bytes);

  size_t texts() const { return ends_.size(); }
  // All texts together.
  size_t size() const { return counts_.size(); }
  // Each bucket of the text once, in the order of their first appearance.
  absl::Span<const NgramCount> operator[](size_t text) const {
    const size_t begin = text == 0 ? 0 : ends_[text - 1];
    return absl::MakeConstSpan(counts_).subspan(begin, ends_[text] - begin);
  }

 private:
  void AddPart(absl::string_view text);
  void AddBucket(uint64_t hash);

  std::vector<NgramCount> counts_;
  std::vector<size_t> ends_;  // [text]
  // [bucket]: its index in counts_, counted from the current text's first, plus 1; 0: it has none.
  std::vector<uint32_t> place_;
};

}  // namespace traind
