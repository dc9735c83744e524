#include <algorithm>
#include <cfloat>

#include "common/data/text/piece_trie.h"
#include "common/data/text/sentencepiece_pieces.h"

namespace traind {
namespace {

using Type = SentencepieceModel::Type;

constexpr float kUnknownPenalty = 10;

class Unigram final : public SentencepiecePieces {
 public:
  explicit Unigram(const SentencepieceModel& model) : model_(model) {}

  absl::Status AddPieces() {
    for (size_t i = 0; i < model_.pieces.size(); ++i) {
      const SentencepieceModel::Piece& piece = model_.pieces[i];
      if (piece.type == Type::kNormal) {
        least_score_ = std::min(least_score_, piece.score);
        greatest_score_ = std::max(greatest_score_, piece.score);
      }
      if (piece.type != Type::kNormal && piece.type != Type::kUser) continue;
      if (!trie_.Add(piece.text, static_cast<int32_t>(i))) {
        return NoSentencepieceModel("a piece occurs twice");
      }
    }
    return absl::OkStatus();
  }

  void Cut(absl::string_view text, std::vector<TextPart>& parts) const override {
    struct Node {
      int32_t piece = -1;
      float score = 0;
      int64_t begin = -1;  // -1: no piece ends here yet
    };
    std::vector<Node> ends(text.size() + 1);
    const float unknown_score = least_score_ - kUnknownPenalty;
    const auto offer = [&](size_t begin, size_t end, int32_t piece, double candidate) {
      Node& node = ends[end];
      if (node.begin >= 0 && candidate <= node.score) return;
      node = {piece, static_cast<float>(candidate), static_cast<int64_t>(begin)};
    };
    for (size_t begin = 0; begin < text.size();) {
      const size_t character = CharacterLength(text.substr(begin));
      bool alone = false;  // the character is itself a piece
      trie_.ForEachPrefix(text.substr(begin), [&](size_t bytes, int32_t piece) {
        offer(begin, begin + bytes, piece, ScoreOf(piece, bytes) + ends[begin].score);
        alone = alone || bytes == character;
      });
      if (!alone) {
        const float candidate = unknown_score + ends[begin].score;
        offer(begin, begin + character, model_.unknown, candidate);
      }
      begin += character;
    }
    const size_t first = parts.size();
    for (auto end = static_cast<int64_t>(text.size()); end > 0;) {
      const Node& node = ends[static_cast<size_t>(end)];
      parts.push_back(
          {text.substr(static_cast<size_t>(node.begin), static_cast<size_t>(end - node.begin)),
           node.piece});
      end = node.begin;
    }
    std::reverse(parts.begin() + static_cast<int64_t>(first), parts.end());
  }

 private:
  // A user-defined symbol always wins.
  double ScoreOf(int32_t id, size_t bytes) const {
    const SentencepieceModel::Piece& piece = model_.pieces[static_cast<size_t>(id)];
    if (piece.type != Type::kUser) return static_cast<double>(piece.score);
    return static_cast<double>(static_cast<float>(bytes) * greatest_score_) - 0.1;
  }

  const SentencepieceModel& model_;
  // Scores of the normal pieces; if there are none, SentencePiece's initial values.
  float least_score_ = FLT_MAX, greatest_score_ = FLT_MIN;
  PieceTrie trie_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SentencepiecePieces>> UnigramPieces(
    const SentencepieceModel& model) {
  auto pieces = std::make_unique<Unigram>(model);
  const absl::Status taken = pieces->AddPieces();
  if (!taken.ok()) return taken;
  return std::unique_ptr<SentencepiecePieces>(std::move(pieces));
}

}  // namespace traind
