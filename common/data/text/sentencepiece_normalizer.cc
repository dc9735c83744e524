#include "common/data/text/sentencepiece_normalizer.h"

#include <absl/strings/match.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace traind {
namespace {

constexpr absl::string_view kBlank = "\xe2\x96\x81";  // stands for a blank in pieces

}  // namespace

size_t CharacterLength(absl::string_view text) {
  constexpr unsigned char kLengths[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};
  return std::min<size_t>(text.size(), kLengths[static_cast<unsigned char>(text[0]) >> 4]);
}

absl::StatusOr<SentencepieceNormalizer> SentencepieceNormalizer::Create(
    const SentencepieceModel& model) {
  SentencepieceNormalizer normalizer(model);
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const SentencepieceModel::Piece& piece = model.pieces[i];
    if (piece.type == SentencepieceModel::Type::kUser) {
      normalizer.symbols_.Add(piece.text, static_cast<int32_t>(i));
    }
  }
  std::optional<CharacterMap> map = CharacterMap::Parse(model.character_map);
  if (!map.has_value()) return NoSentencepieceModel("its character map is cut");
  normalizer.map_ = *std::move(map);
  return normalizer;
}

size_t SentencepieceNormalizer::SymbolAt(absl::string_view text) const {
  size_t longest = 0;
  symbols_.ForEachPrefix(text, [&](size_t bytes, int32_t) { longest = bytes; });
  return longest;
}

// Finds the longest beginning that the map replaces, or else one character.
CharacterMap::Prefix SentencepieceNormalizer::Normalized(absl::string_view text) const {
  if (const size_t symbol = SymbolAt(text); symbol > 0) return {text.substr(0, symbol), symbol};
  const CharacterMap::Prefix longest = map_.Longest(text);
  if (longest.bytes > 0) return longest;
  const size_t length = CharacterLength(text);
  return {text.substr(0, length), length};
}

std::string SentencepieceNormalizer::Normalize(absl::string_view text) const {
  std::string out;
  const absl::string_view blank = model_.escape_blanks ? kBlank : absl::string_view(" ");
  const auto add_blank = [&] { out.append(blank.data(), blank.size()); };
  while (model_.fewer_blanks && !text.empty()) {
    const CharacterMap::Prefix prefix = Normalized(text);
    if (prefix.becomes != " ") break;
    text.remove_prefix(prefix.bytes);
  }
  if (text.empty()) return out;
  if (model_.dummy_prefix && !model_.suffix) add_blank();
  bool after_blank = model_.fewer_blanks;
  while (!text.empty()) {
    CharacterMap::Prefix prefix = Normalized(text);
    while (after_blank && absl::ConsumePrefix(&prefix.becomes, " ")) {
    }
    for (const char c : prefix.becomes) {
      if (c == ' ') {
        add_blank();
      } else {
        out.push_back(c);
      }
    }
    if (!prefix.becomes.empty()) after_blank = prefix.becomes.back() == ' ';
    if (!model_.fewer_blanks) after_blank = false;
    text.remove_prefix(prefix.bytes);
  }
  while (model_.fewer_blanks && absl::EndsWith(out, blank)) out.resize(out.size() - blank.size());
  if (model_.dummy_prefix && model_.suffix) add_blank();
  return out;
}

}  // namespace traind
