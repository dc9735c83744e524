// What stands in a SentencePiece model's file.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace traind {

// Threads: immutable once parsed.
struct SentencepieceModel {
  enum class Kind { kUnigram = 1, kBpe = 2 };
  enum class Type { kNormal = 1, kUnknown = 2, kControl = 3, kUser = 4, kUnused = 5, kByte = 6 };
  struct Piece {
    absl::string_view text;  // of `bytes`
    float score = 0;
    Type type = Type::kNormal;
  };

  // Reads Protobuf's wire format by hand: what uses it must not link that library.
  // InvalidArgument: it is no such file, or of a kind that is neither unigram nor BPE, or it
  // contradicts itself as SentencePiece would find, too.
  static absl::StatusOr<std::unique_ptr<const SentencepieceModel>> Parse(absl::string_view file);

  const std::string bytes;  // the file's
  Kind kind = Kind::kUnigram;
  std::vector<Piece> pieces;
  int32_t unknown = -1;              // its place among the pieces
  bool byte_fallback = false;        // unknown characters are pieces of a byte each
  std::vector<int32_t> byte_pieces;  // [256] then, else empty
  bool dummy_prefix = true, fewer_blanks = true, escape_blanks = true, suffix = false;
  absl::string_view character_map;  // NormalizerSpec.precompiled_charsmap

  explicit SentencepieceModel(absl::string_view file) : bytes(file) {}

 private:
  absl::Status Take();
  absl::Status TakePiece(absl::string_view message);
  absl::Status TakeTrainer(absl::string_view message);
  absl::Status TakeNormalizer(absl::string_view message);
  absl::Status TakeBytePieces();
};

// InvalidArgument with that text.
absl::Status NoSentencepieceModel(absl::string_view what);

}  // namespace traind
