// Cuts the part of a text between added tokens into ids.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace traind {

// Threads: immutable.
class TextPieces {
 public:
  virtual ~TextPieces() = default;
  // Texts change in this way before they are cut. Not called where nothing changes.
  virtual bool changes() const { return false; }
  virtual std::string Normalize(absl::string_view text) const { return std::string(text); }
  // Appends the ids of a normalized part.
  virtual void Encode(absl::string_view normalized, std::vector<int32_t>& ids) const = 0;
};

using Vocabulary = absl::flat_hash_map<std::string, int32_t>;

// BERT's: words are cut into the longest pieces that the vocabulary has (Devlin et al. 2019).
struct WordPieceOptions {
  bool clean = true, split_han = true, strip_accents = true, lower = true;
  std::string inner = "##";  // before a piece that does not begin its word
  size_t longest = 100;      // characters of a word; longer ones are unknown
  std::string unknown = "[UNK]";
};
// InvalidArgument: the vocabulary has no unknown piece.
absl::StatusOr<std::unique_ptr<TextPieces>> WordPieces(WordPieceOptions options,
                                                       Vocabulary vocabulary);

// GPT-2's and RoBERTa's: the bytes of words are joined, the first merge of the list first (Radford
// et al. 2019).
struct ByteBpeOptions {
  bool blank_before = false;  // a blank is put before a part that begins with none
  bool whole_words = false;   // a word that is in the vocabulary is not cut
};
// vocabulary and merges: in the letters that stand for bytes. InvalidArgument: the vocabulary lacks
// a byte, or what a merge gives.
absl::StatusOr<std::unique_ptr<TextPieces>> ByteBpe(
    const ByteBpeOptions& options, const Vocabulary& vocabulary,
    const std::vector<std::pair<std::string, std::string>>& merges);

// SentencePiece's: the pieces with the greatest sum of scores (Kudo 2018), by the rules of the
// `tokenizers` library, which differ from SentencePiece's own in unknown characters.
struct UnigramOptions {
  int32_t unknown = -1;                // the id of what is in no piece
  bool byte_fallback = false;          // an unknown character becomes one piece per byte
  std::string blank = "\xe2\x96\x81";  // stands for a blank in pieces
  bool blank_before = true;            // it is put before a part that begins with none
  bool split_at_blanks = true;         // no piece goes beyond a blank
  bool drop_blanks = false;            // words between blanks are parts of their own
  bool split_punctuation = false;      // punctuation marks are parts of their own
};
// pieces: with their scores, by id. InvalidArgument: the unknown piece is none of them.
absl::StatusOr<std::unique_ptr<TextPieces>> Unigram(
    UnigramOptions options, const std::vector<std::pair<std::string, double>>& pieces);

}  // namespace traind
