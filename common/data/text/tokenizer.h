// Turns texts into the numbers that a network takes.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace traind {

// Turns a text into ids of tokens.
// Threads: immutable.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // Ids are 0 .. size() - 1.
  virtual int32_t size() const = 0;
  // Appends the ids of a text's tokens; an empty or blank text has none. text: UTF-8
  // (FirstNotUtf8); other bytes give some ids and do no harm.
  virtual void Encode(absl::string_view text, std::vector<int32_t>& ids) const = 0;
  // Returns bytes from which ParseTokenizer makes the same tokenizer.
  virtual std::string Serialize() const = 0;
};

// Parses the bytes of Serialize(), of a SentencePiece model or of a tokenizer.json. DataLoss or
// InvalidArgument: they are none of these, or of a kind that is not supported.
absl::StatusOr<std::unique_ptr<Tokenizer>> ParseTokenizer(absl::string_view bytes);

// Where more than `most` ids follow `begin`, keeps only the first and the last half, because an
// opinion stands at a text's end as often as at its beginning. If `most` is odd, the first half is
// the larger one.
void KeepBothEnds(size_t begin, int64_t most, std::vector<int32_t>& ids);

}  // namespace traind
