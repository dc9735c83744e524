#include "common/data/text/sentencepiece_normalizer.h"

#include <absl/strings/match.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/status_macros.h"

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
  RETURN_IF_ERROR(normalizer.ParseCharacterMap(model.character_map));
  return normalizer;
}

size_t SentencepieceNormalizer::SymbolAt(absl::string_view text) const {
  size_t longest = 0;
  symbols_.ForEachPrefix(text, [&](size_t bytes, int32_t) { longest = bytes; });
  return longest;
}

// Reads the map: the trie's size in bytes (uint32), the trie, then the replacement texts.
absl::Status SentencepieceNormalizer::ParseCharacterMap(absl::string_view map) {
  if (map.empty()) return absl::OkStatus();
  uint32_t bytes = 0;
  if (map.size() < sizeof bytes) return NoSentencepieceModel("its character map is cut");
  std::memcpy(&bytes, map.data(), sizeof bytes);
  map.remove_prefix(sizeof bytes);
  if (bytes > map.size() || bytes % sizeof(uint32_t) != 0 || bytes == 0) {
    return NoSentencepieceModel("its character map is cut");
  }
  map_units_.resize(bytes / sizeof(uint32_t));
  std::memcpy(map_units_.data(), map.data(), bytes);
  map_texts_ = std::string(map.substr(bytes));
  map_texts_.push_back('\0');
  return absl::OkStatus();
}

// Finds the longest beginning that the map replaces, or else one character. The map is a double
// array as in Darts-clone (Yata 2008).
SentencepieceNormalizer::Prefix SentencepieceNormalizer::Normalized(absl::string_view text) const {
  const auto offset = [](uint32_t unit) { return unit >> 10 << ((unit & 1u << 9) >> 6); };
  if (const size_t symbol = SymbolAt(text); symbol > 0) return {text.substr(0, symbol), symbol};
  Prefix longest;
  if (!map_units_.empty()) {
    size_t at = offset(map_units_[0]);
    for (size_t i = 0; i < text.size(); ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      at ^= byte;
      if (at >= map_units_.size()) break;
      const uint32_t unit = map_units_[at];
      if ((unit & (1u << 31 | 0xffu)) != byte) break;
      at ^= offset(unit);
      if ((unit >> 8 & 1u) == 0) continue;
      if (at >= map_units_.size()) break;
      const size_t place = map_units_[at] & 0x7fffffffu;
      if (place < map_texts_.size()) longest = {map_texts_.c_str() + place, i + 1};
    }
  }
  if (longest.bytes > 0) return longest;
  const size_t length = CharacterLength(text);
  return {text.substr(0, length), length};
}

std::string SentencepieceNormalizer::Normalize(absl::string_view text) const {
  std::string out;
  const absl::string_view blank = model_.escape_blanks ? kBlank : absl::string_view(" ");
  const auto add_blank = [&] { out.append(blank.data(), blank.size()); };
  while (model_.fewer_blanks && !text.empty()) {
    const Prefix prefix = Normalized(text);
    if (prefix.becomes != " ") break;
    text.remove_prefix(prefix.bytes);
  }
  if (text.empty()) return out;
  if (model_.dummy_prefix && !model_.suffix) add_blank();
  bool after_blank = model_.fewer_blanks;
  while (!text.empty()) {
    Prefix prefix = Normalized(text);
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
