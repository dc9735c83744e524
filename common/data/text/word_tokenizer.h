#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/data/text/tokenizer.h"

namespace traind {

// Counts words of texts to build a vocabulary.
// Threads: confined to one.
class WordCounter {
 public:
  void Add(absl::string_view text);
  // Returns the most frequent words, at most `most`, in descending order (equally frequent ones
  // sorted bytewise). Words that occur only once are left out, so that training also sees words
  // outside the vocabulary.
  std::vector<std::string> MostFrequent(int64_t most) const;

 private:
  absl::flat_hash_map<std::string, int64_t> counts_;
};

// Encodes words (ForEachWord) as their index in a vocabulary, from 1; 0: any other word. Threads:
// immutable.
class WordTokenizer final : public Tokenizer {
 public:
  // words: without repetitions.
  explicit WordTokenizer(std::vector<std::string> words);

  int32_t size() const override { return static_cast<int32_t>(words_.size()) + 1; }
  void Encode(absl::string_view text, std::vector<int32_t>& ids) const override;
  std::string Serialize() const override;
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Parse(absl::string_view bytes);

  // The first bytes of Serialize().
  static constexpr absl::string_view kMagic = "traind words 1\n";

 private:
  const std::vector<std::string> words_;
  absl::flat_hash_map<absl::string_view, int32_t> ids_;  // views of words_
};

}  // namespace traind
