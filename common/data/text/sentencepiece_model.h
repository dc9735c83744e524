// The content of a SentencePiece model file.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace traind {

// A parsed SentencePiece model.
// Threads: immutable once parsed.
struct SentencepieceModel {
  enum class Kind { kUnigram = 1, kBpe = 2 };
  enum class Type { kNormal = 1, kUnknown = 2, kControl = 3, kUser = 4, kUnused = 5, kByte = 6 };
  struct Piece {
    absl::string_view text;  // a view of `bytes`
    float score = 0;
    Type type = Type::kNormal;
  };

  // Reads Protobuf's wire format by hand, because users of this class must not link that library.
  // InvalidArgument: the file is not such a model, its type is neither unigram nor BPE, or it is
  // inconsistent in a way that SentencePiece would refuse, too.
  static absl::StatusOr<std::unique_ptr<const SentencepieceModel>> Parse(absl::string_view file);

  const std::string bytes;  // of the file
  Kind kind = Kind::kUnigram;
  std::vector<Piece> pieces;
  int32_t unknown = -1;              // index of the unknown piece
  bool byte_fallback = false;        // unknown characters become one piece per byte
  std::vector<int32_t> byte_pieces;  // [256] with byte_fallback, else empty
  bool dummy_prefix = true, fewer_blanks = true, escape_blanks = true, suffix = false;
  absl::string_view character_map;  // NormalizerSpec.precompiled_charsmap

  explicit SentencepieceModel(absl::string_view file) : bytes(file) {}

 private:
  absl::Status ParseModel();
  absl::Status ParsePiece(absl::string_view message);
  absl::Status ParseTrainer(absl::string_view message);
  absl::Status ParseNormalizer(absl::string_view message);
  absl::Status FindBytePieces();
};

// Returns InvalidArgument with that text.
absl::Status NoSentencepieceModel(absl::string_view what);

}  // namespace traind
