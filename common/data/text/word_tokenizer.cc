#include "common/data/text/word_tokenizer.h"

#include <absl/container/flat_hash_set.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <utility>

#include "common/data/text/words.h"

namespace traind {

void WordCounter::Add(absl::string_view text) {
  ForEachWord(text, [&](absl::string_view word) { ++counts_[word]; });
}

std::vector<std::string> WordCounter::MostFrequent(int64_t most) const {
  std::vector<std::pair<int64_t, absl::string_view>> found;
  for (const auto& [word, count] : counts_) {
    if (count > 1) found.emplace_back(-count, word);
  }
  const auto kept = std::min(static_cast<int64_t>(found.size()), std::max<int64_t>(0, most));
  std::partial_sort(found.begin(), found.begin() + kept, found.end());
  found.resize(static_cast<size_t>(kept));
  std::vector<std::string> words;
  words.reserve(found.size());
  for (const auto& [count, word] : found) words.emplace_back(word);
  return words;
}

WordTokenizer::WordTokenizer(std::vector<std::string> words) : words_(std::move(words)) {
  ids_.reserve(words_.size());
  int32_t id = 0;
  for (const std::string& word : words_) ids_.emplace(word, ++id);
}

void WordTokenizer::Encode(absl::string_view text, std::vector<int32_t>& ids) const {
  ForEachWord(text, [&](absl::string_view word) {
    const auto found = ids_.find(word);
    ids.push_back(found == ids_.end() ? 0 : found->second);
  });
}

// No word contains a line end.
std::string WordTokenizer::Serialize() const {
  std::string bytes(kMagic);
  for (const std::string& word : words_) absl::StrAppend(&bytes, word, "\n");
  return bytes;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> WordTokenizer::Parse(absl::string_view bytes) {
  const auto damaged = [](absl::string_view what) {
    return absl::DataLossError(absl::StrCat("a vocabulary ", what));
  };
  if (!absl::StartsWith(bytes, kMagic)) return damaged("of an unknown kind");
  bytes.remove_prefix(kMagic.size());
  if (!bytes.empty() && bytes.back() != '\n') return damaged("that is cut short");
  std::vector<std::string> words = absl::StrSplit(bytes, '\n');
  words.pop_back();  // the empty one after the last line end
  absl::flat_hash_set<absl::string_view> seen;
  for (const std::string& word : words) {
    if (word.empty() || !seen.insert(word).second)
      return damaged("with a word twice, or an empty one");
  }
  return std::make_unique<WordTokenizer>(std::move(words));
}

}  // namespace traind
