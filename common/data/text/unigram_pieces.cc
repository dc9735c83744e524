#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "common/data/text/characters.h"
#include "common/data/text/piece_trie.h"
#include "common/data/text/text_pieces.h"

namespace traind {
namespace {

constexpr double kUnknownPenalty = 10;

class UnigramCutter final : public TextPieces {
 public:
  UnigramCutter(UnigramOptions options, const std::vector<std::pair<std::string, double>>& pieces)
      : options_(std::move(options)) {
    least_ = pieces.empty() ? 0 : pieces[0].second;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const auto& [text, score] = pieces[i];
      least_ = std::min(least_, score);
      scores_.push_back(score);
      ids_.insert_or_assign(text, static_cast<int32_t>(i));  // the last one of equals counts
    }
    for (const auto& [text, id] : ids_) {
      if (!text.empty()) trie_.Add(text, id);
    }
    for (uint32_t byte = 0; byte < of_byte_.size(); ++byte) {
      const auto found = ids_.find(absl::StrFormat("<0x%02X>", byte));
      of_byte_[byte] = found == ids_.end() ? -1 : found->second;
    }
  }

  void Encode(absl::string_view text, std::vector<int32_t>& ids) const override {
    for (const absl::string_view part : Parts(text)) EncodePart(part, ids);
  }

 private:
  // A piece that ends at some place, on the best way to it.
  struct Node {
    double score = 0;
    int32_t piece = 0;
    int64_t begin = -1;  // -1: no piece ends here yet
  };

  // Cuts where the options say so, before blanks are replaced.
  std::vector<absl::string_view> Parts(absl::string_view text) const {
    std::vector<absl::string_view> parts;
    size_t length = 0;  // of the part that `text` begins with
    const auto end_part = [&](size_t behind) {
      if (length > 0) parts.push_back(text.substr(0, length));
      text.remove_prefix(length + behind);
      length = 0;
    };
    while (length < text.size()) {
      const Character c = FirstCharacter(text.substr(length));
      if (options_.drop_blanks && IsBlank(c.value)) {
        end_part(c.bytes);
      } else if (options_.split_punctuation && IsBertPunctuation(c.value)) {
        end_part(0);
        length = c.bytes;
        end_part(0);
      } else {
        length += c.bytes;
      }
    }
    end_part(0);
    return parts;
  }

  void EncodePart(absl::string_view part, std::vector<int32_t>& ids) const {
    const std::string& blank = options_.blank;
    std::string text;
    for (const char c : part) {
      if (c == ' ') {
        text += blank;
      } else {
        text.push_back(c);
      }
    }
    if (options_.blank_before && text.compare(0, blank.size(), blank) != 0) text = blank + text;
    size_t begin = 0;
    while (begin < text.size()) {
      size_t end = options_.split_at_blanks ? text.find(blank, begin + 1) : std::string::npos;
      end = std::min(end, text.size());
      EncodeWord(absl::string_view(text).substr(begin, end - begin), ids);
      begin = end;
    }
  }

  void EncodeWord(absl::string_view word, std::vector<int32_t>& ids) const {
    const std::vector<Node> ends = BestWays(word);
    std::vector<std::pair<size_t, size_t>> pieces;  // begin and end, from the last one on
    bool after_unknown = false;
    for (size_t end = word.size(); end > 0;) {
      const Node& node = ends[end];
      const auto begin = static_cast<size_t>(node.begin);
      const bool unknown = node.piece == options_.unknown;
      if (unknown && after_unknown) {
        pieces.back().first = begin;  // a run of unknown ones is one
      } else {
        pieces.emplace_back(begin, end);
      }
      after_unknown = unknown;
      end = begin;
    }
    for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
      Put(word.substr(piece->first, piece->second - piece->first), ids);
    }
  }

  // Pieces are whole characters, so a piece that begins with a character ends with one, too.
  std::vector<Node> BestWays(absl::string_view word) const {
    std::vector<Node> ends(word.size() + 1);
    for (size_t begin = 0; begin < word.size();) {
      const size_t character = FirstCharacter(word.substr(begin)).bytes;
      bool alone = false;  // the character is itself a piece
      const auto offer = [&](size_t bytes, int32_t piece, double score) {
        Node& node = ends[begin + bytes];
        score += ends[begin].score;
        if (node.begin >= 0 && score <= node.score) return;
        node = {score, piece, static_cast<int64_t>(begin)};
      };
      trie_.ForEachPrefix(word.substr(begin), [&](size_t bytes, int32_t piece) {
        offer(bytes, piece, scores_[static_cast<size_t>(piece)]);
        alone = alone || bytes == character;
      });
      if (!alone) offer(character, options_.unknown, least_ - kUnknownPenalty);
      begin += character;
    }
    return ends;
  }

  void Put(absl::string_view piece, std::vector<int32_t>& ids) const {
    if (const auto found = ids_.find(piece); found != ids_.end()) {
      return ids.push_back(found->second);
    }
    const auto id_of = [this](char c) { return of_byte_[static_cast<unsigned char>(c)]; };
    const bool in_bytes =
        options_.byte_fallback &&
        std::all_of(piece.begin(), piece.end(), [&](char c) { return id_of(c) >= 0; });
    if (!in_bytes) return ids.push_back(options_.unknown);
    for (const char c : piece) ids.push_back(id_of(c));
  }

  const UnigramOptions options_;
  double least_ = 0;
  std::vector<double> scores_;
  absl::flat_hash_map<std::string, int32_t> ids_;
  PieceTrie trie_;
  std::array<int32_t, 256> of_byte_{};
};

}  // namespace

absl::StatusOr<std::unique_ptr<TextPieces>> Unigram(
    UnigramOptions options, const std::vector<std::pair<std::string, double>>& pieces) {
  if (options.unknown < 0 || static_cast<size_t>(options.unknown) >= pieces.size()) {
    return absl::InvalidArgumentError("the vocabulary has no unknown piece");
  }
  if (options.blank.empty()) return absl::InvalidArgumentError("nothing stands for a blank");
  return std::make_unique<UnigramCutter>(std::move(options), pieces);
}

}  // namespace traind
