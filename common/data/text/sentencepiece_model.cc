#include "common/data/text/sentencepiece_model.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <cmath>
#include <cstring>

#include "common/base/status_macros.h"

namespace traind {
namespace {

constexpr size_t kMostPieces = 1 << 20;
constexpr size_t kByteValues = 256;

// One field of a message in Protobuf's wire format.
struct Field {
  uint32_t number = 0;
  uint64_t value = 0;       // of a varint, or the bits of a fixed-size field
  absl::string_view bytes;  // of a length-delimited field
};

bool ReadVarint(absl::string_view& from, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !from.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(from[0]);
    from.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool ReadField(absl::string_view& from, Field& field) {
  uint64_t tag = 0;
  if (!ReadVarint(from, tag)) return false;
  field = Field();
  field.number = static_cast<uint32_t>(tag >> 3);
  size_t size = 0;
  switch (tag & 7) {
    case 0:
      return ReadVarint(from, field.value);
    case 1:
      size = 8;
      break;
    case 5:
      size = 4;
      break;
    case 2: {
      uint64_t length = 0;
      if (!ReadVarint(from, length) || length > from.size()) return false;
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

// Calls use(field) for each field of a message; returns the first error.
template <class Use>
absl::Status ForEachField(absl::string_view message, const Use& use) {
  Field field;
  while (!message.empty()) {
    if (!ReadField(message, field))
      return NoSentencepieceModel("it is cut, or is another kind of file");
    RETURN_IF_ERROR(use(field));
  }
  return absl::OkStatus();
}

// Returns 0-255 for "<0x41>" and the like, else -1.
int ByteOf(absl::string_view piece) {
  constexpr absl::string_view kDigits = "0123456789ABCDEF";
  if (piece.size() != 6 || piece.substr(0, 3) != "<0x" || piece[5] != '>') return -1;
  const size_t high = kDigits.find(piece[3]), low = kDigits.find(piece[4]);
  return high == kDigits.npos || low == kDigits.npos ? -1 : static_cast<int>(16 * high + low);
}

}  // namespace

absl::Status NoSentencepieceModel(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("not a SentencePiece model: ", what));
}

// Message SentencePiece {1: piece, 2: score, 3: type}.
absl::Status SentencepieceModel::ParsePiece(absl::string_view message) {
  Piece piece;
  uint64_t type = 1;
  RETURN_IF_ERROR(ForEachField(message, [&](const Field& field) {
    if (field.number == 1) piece.text = field.bytes;
    if (field.number == 2) std::memcpy(&piece.score, &field.value, sizeof piece.score);
    if (field.number == 3) type = field.value;
    return absl::OkStatus();
  }));
  if (pieces.size() >= kMostPieces)
    return NoSentencepieceModel("it has more than a million pieces");
  if (!std::isfinite(piece.score)) return NoSentencepieceModel("a score is not finite");
  if (piece.text.empty()) return NoSentencepieceModel("a piece is empty");
  if (type < 1 || type > 6) return NoSentencepieceModel("a piece has an unknown type");
  piece.type = static_cast<Type>(type);
  if (piece.type == Type::kUnknown) {
    if (unknown >= 0) return NoSentencepieceModel("it has two pieces for unknown text");
    unknown = static_cast<int32_t>(pieces.size());
  }
  pieces.push_back(piece);
  return absl::OkStatus();
}

// Message TrainerSpec {3: model_type, 24: treat_whitespace_as_suffix, 35: byte_fallback}.
absl::Status SentencepieceModel::ParseTrainer(absl::string_view message) {
  return ForEachField(message, [&](const Field& field) {
    if (field.number == 24) suffix = field.value != 0;
    if (field.number == 35) byte_fallback = field.value != 0;
    if (field.number == 3) {
      if (field.value != 1 && field.value != 2) {
        return absl::InvalidArgumentError(
            "a SentencePiece model that is neither unigram nor BPE: use one that is");
      }
      kind = static_cast<Kind>(field.value);
    }
    return absl::OkStatus();
  });
}

// Message NormalizerSpec {2: precompiled_charsmap, 3: add_dummy_prefix, 4:
// remove_extra_whitespaces, 5: escape_whitespaces}.
absl::Status SentencepieceModel::ParseNormalizer(absl::string_view message) {
  return ForEachField(message, [&](const Field& field) {
    if (field.number == 2) character_map = field.bytes;
    if (field.number == 3) dummy_prefix = field.value != 0;
    if (field.number == 4) fewer_blanks = field.value != 0;
    if (field.number == 5) escape_blanks = field.value != 0;
    return absl::OkStatus();
  });
}

absl::Status SentencepieceModel::FindBytePieces() {
  std::vector<int32_t> found(kByteValues, -1);
  size_t count = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].type != Type::kByte) continue;
    const int value = ByteOf(pieces[i].text);
    if (value < 0 || !byte_fallback || found[static_cast<size_t>(value)] >= 0) {
      return NoSentencepieceModel("a byte's piece is invalid, repeated or not allowed");
    }
    found[static_cast<size_t>(value)] = static_cast<int32_t>(i);
    ++count;
  }
  if (!byte_fallback) return absl::OkStatus();
  if (count != kByteValues) return NoSentencepieceModel("some byte has no piece");
  byte_pieces = std::move(found);
  return absl::OkStatus();
}

// Message ModelProto {1: pieces, 2: trainer_spec, 3: normalizer_spec}.
absl::Status SentencepieceModel::ParseModel() {
  RETURN_IF_ERROR(ForEachField(bytes, [&](const Field& field) {
    if (field.number == 1) return ParsePiece(field.bytes);
    if (field.number == 2) return ParseTrainer(field.bytes);
    if (field.number == 3) return ParseNormalizer(field.bytes);
    return absl::OkStatus();
  }));
  if (unknown < 0) return NoSentencepieceModel("it has no piece for unknown text");
  return FindBytePieces();
}

absl::StatusOr<std::unique_ptr<const SentencepieceModel>> SentencepieceModel::Parse(
    absl::string_view file) {
  auto model = std::make_unique<SentencepieceModel>(file);
  RETURN_IF_ERROR(model->ParseModel());
  return std::unique_ptr<const SentencepieceModel>(std::move(model));
}

}  // namespace traind
