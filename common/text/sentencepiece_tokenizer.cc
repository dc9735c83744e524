#include "common/text/sentencepiece_tokenizer.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "common/status_macros.h"

namespace traind {
namespace {

constexpr absl::string_view kBlank = "\xe2\x96\x81";  // what stands for a blank in pieces
constexpr float kUnknownPenalty = 10;
constexpr size_t kMostPieces = 1 << 20;

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("no SentencePiece model: ", what));
}

// One field of a message in Protobuf's wire format.
struct Field {
  uint32_t number = 0;
  uint64_t value = 0;       // of a varint, or the bits of a fixed one
  absl::string_view bytes;  // of a length-delimited one
};

bool TakeVarint(absl::string_view& from, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !from.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(from[0]);
    from.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool TakeField(absl::string_view& from, Field& field) {
  uint64_t tag = 0;
  if (!TakeVarint(from, tag)) return false;
  field = Field();
  field.number = static_cast<uint32_t>(tag >> 3);
  size_t size = 0;
  switch (tag & 7) {
    case 0:
      return TakeVarint(from, field.value);
    case 1:
      size = 8;
      break;
    case 5:
      size = 4;
      break;
    case 2: {
      uint64_t length = 0;
      if (!TakeVarint(from, length) || length > from.size()) return false;
      field.bytes = from.substr(0, length);
      from.remove_prefix(length);
      return true;
    }
    default:
      return false;
  }
  if (from.size() < size) return false;
  std::memcpy(&field.value, from.data(), size);  // little-endian, as this machine
  from.remove_prefix(size);
  return true;
}

// Calls use(field) for each of a message's; its first error.
template <class Use>
absl::Status ForEachField(absl::string_view message, const Use& use) {
  Field field;
  while (!message.empty()) {
    if (!TakeField(message, field)) return Wrong("it is cut, or is another kind of file");
    RETURN_IF_ERROR(use(field));
  }
  return absl::OkStatus();
}

size_t CharacterLength(absl::string_view text) {
  constexpr unsigned char kLengths[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};
  return std::min<size_t>(text.size(), kLengths[static_cast<unsigned char>(text[0]) >> 4]);
}

}  // namespace

// SentencePiece {1: piece, 2: score, 3: type}.
absl::Status SentencepieceTokenizer::ParsePiece(absl::string_view message) {
  enum Type : uint64_t {
    kNormal = 1,
    kUnknown = 2,
    kControl = 3,
    kUser = 4,
    kUnused = 5,
    kByte = 6
  };
  absl::string_view piece;
  float score = 0;
  uint64_t type = kNormal;
  RETURN_IF_ERROR(ForEachField(message, [&](const Field& field) {
    if (field.number == 1) piece = field.bytes;
    if (field.number == 2) std::memcpy(&score, &field.value, sizeof score);
    if (field.number == 3) type = field.value;
    return absl::OkStatus();
  }));
  if (scores_.size() >= kMostPieces) return Wrong("more than a million pieces");
  if (!std::isfinite(score)) return Wrong("a score that is not finite");
  const auto id = static_cast<int32_t>(scores_.size());
  scores_.push_back(score);
  if (type == kUnknown) unknown_ = id;
  if (type == kUser || type == kByte) {
    return absl::InvalidArgumentError(
        "a SentencePiece model with user-defined symbols or bytes: use one without");
  }
  if (type != kNormal) return absl::OkStatus();
  if (piece.empty()) return Wrong("an empty piece");
  least_score_ = std::min(least_score_, score);
  int32_t node = 0;
  for (const char c : piece) {
    const uint64_t key = static_cast<uint64_t>(node) << 8 | static_cast<unsigned char>(c);
    const auto [found, added] =
        trie_.children.emplace(key, static_cast<int32_t>(trie_.piece.size()));
    if (added) trie_.piece.push_back(-1);
    node = found->second;
  }
  trie_.piece[static_cast<size_t>(node)] = id;
  return absl::OkStatus();
}

// TrainerSpec {3: model_type, 24: treat_whitespace_as_suffix}.
absl::Status SentencepieceTokenizer::ParseTrainer(absl::string_view message) {
  return ForEachField(message, [&](const Field& field) {
    if (field.number == 24) suffix_ = field.value != 0;
    if (field.number == 3 && field.value != 1) {
      return absl::InvalidArgumentError(
          "a SentencePiece model that is not unigram: use one that is");
    }
    return absl::OkStatus();
  });
}

// NormalizerSpec {2: precompiled_charsmap, 3: add_dummy_prefix, 4: remove_extra_whitespaces,
// 5: escape_whitespaces}.
absl::Status SentencepieceTokenizer::ParseNormalizer(absl::string_view message) {
  return ForEachField(message, [&](const Field& field) {
    if (field.number == 3) dummy_prefix_ = field.value != 0;
    if (field.number == 4) fewer_blanks_ = field.value != 0;
    if (field.number == 5) escape_blanks_ = field.value != 0;
    return field.number == 2 ? ParseCharacterMap(field.bytes) : absl::OkStatus();
  });
}

// The bytes of a trie, their number first (uint32), then the texts that it tells.
absl::Status SentencepieceTokenizer::ParseCharacterMap(absl::string_view map) {
  if (map.empty()) return absl::OkStatus();
  uint32_t bytes = 0;
  if (map.size() < sizeof bytes) return Wrong("a character map that is cut");
  std::memcpy(&bytes, map.data(), sizeof bytes);
  map.remove_prefix(sizeof bytes);
  if (bytes > map.size() || bytes % sizeof(uint32_t) != 0 || bytes == 0) {
    return Wrong("a character map that is cut");
  }
  map_units_.resize(bytes / sizeof(uint32_t));
  std::memcpy(map_units_.data(), map.data(), bytes);
  map_texts_ = std::string(map.substr(bytes));
  map_texts_.push_back('\0');
  return absl::OkStatus();
}

// The longest part that the map replaces, or else a character. The map is a double array
// as in Darts-clone (Yata 2008).
SentencepieceTokenizer::Prefix SentencepieceTokenizer::Normalized(absl::string_view text) const {
  const auto offset = [](uint32_t unit) { return unit >> 10 << ((unit & 1u << 9) >> 6); };
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

std::string SentencepieceTokenizer::Normalize(absl::string_view text) const {
  std::string out;
  const absl::string_view blank = escape_blanks_ ? kBlank : absl::string_view(" ");
  const auto add_blank = [&] { out.append(blank.data(), blank.size()); };
  while (fewer_blanks_ && !text.empty()) {
    const Prefix prefix = Normalized(text);
    if (prefix.becomes != " ") break;
    text.remove_prefix(prefix.bytes);
  }
  if (text.empty()) return out;
  if (dummy_prefix_ && !suffix_) add_blank();
  bool after_blank = fewer_blanks_;
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
    if (!fewer_blanks_) after_blank = false;
    text.remove_prefix(prefix.bytes);
  }
  while (fewer_blanks_ && absl::EndsWith(out, blank)) out.resize(out.size() - blank.size());
  if (dummy_prefix_ && suffix_) add_blank();
  return out;
}

// The best path (Viterbi), in the arithmetic of SentencePiece's EncodeOptimized.
void SentencepieceTokenizer::Encode(absl::string_view raw, std::vector<int32_t>& ids) const {
  struct Node {
    int32_t piece = -1;
    float score = 0;
    int64_t begin = -1;  // -1: nothing ends here yet
  };
  const std::string text = Normalize(raw);
  std::vector<Node> ends(text.size() + 1);
  const float unknown_score = least_score_ - kUnknownPenalty;
  const auto offer = [&](size_t begin, size_t end, int32_t piece, double candidate) {
    Node& node = ends[end];
    if (node.begin >= 0 && candidate <= node.score) return;
    node = {piece, static_cast<float>(candidate), static_cast<int64_t>(begin)};
  };
  for (size_t begin = 0; begin < text.size();) {
    const size_t character = CharacterLength(absl::string_view(text).substr(begin));
    bool alone = false;  // the character is a piece
    int32_t node = 0;
    for (size_t end = begin; end < text.size();) {
      const auto child = trie_.children.find(static_cast<uint64_t>(node) << 8 |
                                             static_cast<unsigned char>(text[end]));
      if (child == trie_.children.end()) break;
      node = child->second;
      ++end;
      const int32_t piece = trie_.piece[static_cast<size_t>(node)];
      if (piece < 0) continue;
      offer(begin, end, piece,
            static_cast<double>(scores_[static_cast<size_t>(piece)]) + ends[begin].score);
      alone = alone || end - begin == character;
    }
    if (!alone) {
      const float candidate = unknown_score + ends[begin].score;
      offer(begin, begin + character, unknown_, candidate);
    }
    begin += character;
  }
  const size_t first = ids.size();
  for (int64_t end = static_cast<int64_t>(text.size()); end > 0;) {
    const Node& node = ends[static_cast<size_t>(end)];
    // A run of unknown ones is one.
    if (node.piece != unknown_ || ids.size() == first || ids.back() != unknown_) {
      ids.push_back(node.piece);
    }
    end = node.begin;
  }
  std::reverse(ids.begin() + static_cast<int64_t>(first), ids.end());
}

// ModelProto {1: pieces, 2: trainer_spec, 3: normalizer_spec}.
absl::StatusOr<std::unique_ptr<Tokenizer>> SentencepieceTokenizer::Parse(absl::string_view model) {
  std::unique_ptr<SentencepieceTokenizer> tokenizer(new SentencepieceTokenizer());
  tokenizer->model_ = std::string(model);
  RETURN_IF_ERROR(ForEachField(model, [&](const Field& field) {
    if (field.number == 1) return tokenizer->ParsePiece(field.bytes);
    if (field.number == 2) return tokenizer->ParseTrainer(field.bytes);
    if (field.number == 3) return tokenizer->ParseNormalizer(field.bytes);
    return absl::OkStatus();
  }));
  if (tokenizer->unknown_ < 0) return Wrong("it has no piece for what is unknown");
  return tokenizer;
}

}  // namespace traind
