// Texts as the numbers that a network takes.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace traind {

// Threads: immutable.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // Ids are 0 .. size() - 1.
  virtual int32_t size() const = 0;
  // Appends the ids of a text's tokens: none of an empty or blank one. text: UTF-8
  // (FirstNotUtf8); other bytes give some ids, and no harm.
  virtual void Encode(absl::string_view text, std::vector<int32_t>& ids) const = 0;
  // What ParseTokenizer makes the same tokenizer of.
  virtual std::string Serialize() const = 0;
};

// Of Serialize()'s bytes; a SentencePiece model's are such, too. DataLoss or InvalidArgument
// where they are not.
absl::StatusOr<std::unique_ptr<Tokenizer>> ParseTokenizer(absl::string_view bytes);

// Leaves the first and the last half of `most` of the ids after `begin` where there are
// more: an opinion stands at a text's end as often as at its beginning. Odd: one more of
// the first ones.
void KeepBothEnds(size_t begin, int64_t most, std::vector<int32_t>& ids);

}  // namespace traind
