#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include "common/data/text/characters.h"
#include "common/data/text/text_pieces.h"

namespace traind {
namespace {

class WordPieceCutter final : public TextPieces {
 public:
  WordPieceCutter(WordPieceOptions options, Vocabulary vocabulary, int32_t unknown)
      : options_(std::move(options)), vocabulary_(std::move(vocabulary)), unknown_(unknown) {}

  bool changes() const override {
    return options_.clean || options_.split_han || options_.strip_accents || options_.lower;
  }

  std::string Normalize(absl::string_view text) const override {
    std::string result;
    result.reserve(text.size());
    while (!text.empty()) {
      const Character c = FirstCharacter(text);
      text.remove_prefix(c.bytes);
      NormalizeOne(c.value, result);
    }
    return result;
  }

  void Encode(absl::string_view text, std::vector<int32_t>& ids) const override {
    size_t length = 0;  // of the word that the text begins with
    const auto end_word = [&] {
      if (length > 0) EncodeWord(text.substr(0, length), ids);
      text.remove_prefix(length);
      length = 0;
    };
    while (length < text.size()) {
      const Character c = FirstCharacter(text.substr(length));
      const bool blank = IsBlank(c.value);
      if (!blank && !IsBertPunctuation(c.value)) {
        length += c.bytes;
        continue;
      }
      end_word();
      if (blank) {
        text.remove_prefix(c.bytes);
      } else {
        length = c.bytes;
        end_word();
      }
    }
    end_word();
  }

 private:
  void NormalizeOne(uint32_t c, std::string& result) const {
    constexpr uint32_t kReplacement = 0xfffd;
    if (options_.clean) {
      if (c == kReplacement || IsDroppedByBert(c)) return;
      if (IsBlank(c)) c = ' ';
    }
    const bool han = options_.split_han && IsHan(c);
    if (han) result.push_back(' ');
    std::string letters;
    if (options_.strip_accents) {
      AppendWithoutAccents(c, letters);
    } else {
      AppendCharacter(c, letters);
    }
    for (absl::string_view rest = letters; !rest.empty();) {
      const Character letter = FirstCharacter(rest);
      rest.remove_prefix(letter.bytes);
      if (options_.lower) {
        AppendLower(letter.value, result);
      } else {
        AppendCharacter(letter.value, result);
      }
    }
    if (han) result.push_back(' ');
  }

  // Every character but the first byte of each has the form 10xxxxxx.
  static bool BeginsCharacter(char byte) { return (byte & 0xc0) != 0x80; }

  bool TooLong(absl::string_view word) const {
    size_t characters = 0;
    for (const char byte : word) characters += BeginsCharacter(byte) ? 1 : 0;
    return characters > options_.longest;
  }

  // A word is unknown as a whole if any part of it is.
  void EncodeWord(absl::string_view word, std::vector<int32_t>& ids) const {
    const size_t begin = ids.size();
    const auto unknown = [&] {
      ids.resize(begin);
      ids.push_back(unknown_);
    };
    if (TooLong(word)) return unknown();
    std::string piece;
    for (size_t start = 0; start < word.size();) {
      size_t end = word.size();
      for (; end > start; --end) {
        if (end < word.size() && !BeginsCharacter(word[end])) continue;
        piece = start > 0 ? options_.inner : "";
        absl::StrAppend(&piece, word.substr(start, end - start));
        const auto found = vocabulary_.find(piece);
        if (found == vocabulary_.end()) continue;
        ids.push_back(found->second);
        break;
      }
      if (end == start) return unknown();
      start = end;
    }
  }

  const WordPieceOptions options_;
  const Vocabulary vocabulary_;
  const int32_t unknown_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TextPieces>> WordPieces(WordPieceOptions options,
                                                       Vocabulary vocabulary) {
  const auto unknown = vocabulary.find(options.unknown);
  if (unknown == vocabulary.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the vocabulary has no unknown piece ", options.unknown));
  }
  const int32_t id = unknown->second;
  return std::make_unique<WordPieceCutter>(std::move(options), std::move(vocabulary), id);
}

}  // namespace traind
