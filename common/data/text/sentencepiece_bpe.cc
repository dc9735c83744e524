#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <queue>
#include <utility>

#include "common/data/text/sentencepiece_pieces.h"

namespace traind {
namespace {

using Type = SentencepieceModel::Type;

// A part of the text that may still be joined with its neighbours.
struct Symbol {
  absl::string_view text;  // empty: it has been merged into another one
  int32_t before = -1, next = -1;
  bool frozen = false;  // a user-defined symbol
};

// Two neighbours that together are a piece.
struct Pair {
  int32_t left = 0, right = 0;
  float score = 0;
  size_t bytes = 0;
};

struct Worse {
  bool operator()(const Pair& a, const Pair& b) const {
    return a.score < b.score || (a.score == b.score && a.left > b.left);
  }
};

using Halves = std::pair<absl::string_view, absl::string_view>;

class Bpe final : public SentencepiecePieces {
 public:
  Bpe(const SentencepieceModel& model, const SentencepieceNormalizer& normalizer)
      : model_(model), normalizer_(normalizer) {}

  absl::Status AddPieces() {
    for (size_t i = 0; i < model_.pieces.size(); ++i) {
      const SentencepieceModel::Piece& piece = model_.pieces[i];
      const bool joined =
          piece.type == Type::kNormal || piece.type == Type::kUser || piece.type == Type::kUnused;
      auto& into = joined ? pieces_ : reserved_;
      if (!into.emplace(piece.text, static_cast<int32_t>(i)).second) {
        return NoSentencepieceModel("a piece occurs twice");
      }
      if (joined) longest_ = std::max(longest_, piece.text.size());
    }
    return absl::OkStatus();
  }

  void Cut(absl::string_view text, std::vector<TextPart>& parts) const override {
    if (text.empty()) return;
    Run run{*this, SymbolsOf(text), {}, {}};
    for (size_t i = 1; i < run.symbols.size(); ++i) {
      run.Offer(static_cast<int32_t>(i) - 1, static_cast<int32_t>(i));
    }
    while (!run.pairs.empty()) {
      const Pair best = run.pairs.top();
      run.pairs.pop();
      run.Join(best);
    }
    for (int32_t at = 0; at >= 0; at = run.symbols[static_cast<size_t>(at)].next) {
      run.Put(run.symbols[static_cast<size_t>(at)].text, parts);
    }
  }

 private:
  // The state for one text.
  struct Run {
    const Bpe& bpe;
    std::vector<Symbol> symbols;
    std::priority_queue<Pair, std::vector<Pair>, Worse> pairs;
    // The halves of unused pieces, which only serve to build longer ones.
    absl::flat_hash_map<absl::string_view, Halves> unused;

    void Offer(int32_t left, int32_t right) {
      if (left < 0 || right < 0) return;
      const Symbol& a = symbols[static_cast<size_t>(left)];
      const Symbol& b = symbols[static_cast<size_t>(right)];
      const size_t bytes = a.text.size() + b.text.size();
      if (a.frozen || b.frozen || bytes > bpe.longest_) return;
      const absl::string_view both(a.text.data(), bytes);
      const auto piece = bpe.pieces_.find(both);
      if (piece == bpe.pieces_.end()) return;
      pairs.push({left, right, bpe.model_.pieces[static_cast<size_t>(piece->second)].score, bytes});
      if (bpe.IsUnused(piece->second)) unused[both] = {a.text, b.text};
    }

    void Join(const Pair& pair) {
      Symbol& left = symbols[static_cast<size_t>(pair.left)];
      Symbol& right = symbols[static_cast<size_t>(pair.right)];
      // One of them has since been joined with another.
      if (left.text.empty() || right.text.empty() ||
          left.text.size() + right.text.size() != pair.bytes) {
        return;
      }
      left.text = absl::string_view(left.text.data(), pair.bytes);
      left.next = right.next;
      if (right.next >= 0) symbols[static_cast<size_t>(right.next)].before = pair.left;
      right.text = {};
      Offer(left.before, pair.left);
      Offer(pair.left, left.next);
    }

    // The recursion ends because the halves of a piece are shorter than the piece.
    void Put(absl::string_view text, std::vector<TextPart>& parts) const {
      const int32_t id = bpe.IdOf(text);
      const auto halves = bpe.IsUnused(id) ? unused.find(text) : unused.end();
      if (halves == unused.end()) {
        parts.push_back({text, id});
        return;
      }
      Put(halves->second.first, parts);
      Put(halves->second.second, parts);
    }
  };

  std::vector<Symbol> SymbolsOf(absl::string_view text) const {
    std::vector<Symbol> symbols;
    while (!text.empty()) {
      Symbol symbol;
      size_t bytes = normalizer_.SymbolAt(text);
      symbol.frozen = bytes > 0;
      if (bytes == 0) bytes = CharacterLength(text);
      symbol.text = text.substr(0, bytes);
      text.remove_prefix(bytes);
      const auto index = static_cast<int32_t>(symbols.size());
      symbol.before = index - 1;
      symbol.next = text.empty() ? -1 : index + 1;
      symbols.push_back(symbol);
    }
    return symbols;
  }

  bool IsUnused(int32_t id) const {
    return model_.pieces[static_cast<size_t>(id)].type == Type::kUnused;
  }

  int32_t IdOf(absl::string_view text) const {
    for (const auto* pieces : {&reserved_, &pieces_}) {
      if (const auto found = pieces->find(text); found != pieces->end()) return found->second;
    }
    return model_.unknown;
  }

  const SentencepieceModel& model_;
  const SentencepieceNormalizer& normalizer_;
  absl::flat_hash_map<absl::string_view, int32_t> pieces_, reserved_;
  size_t longest_ = 0;  // bytes of the longest piece
};

}  // namespace

absl::StatusOr<std::unique_ptr<SentencepiecePieces>> BpePieces(
    const SentencepieceModel& model, const SentencepieceNormalizer& normalizer) {
  auto pieces = std::make_unique<Bpe>(model, normalizer);
  const absl::Status taken = pieces->AddPieces();
  if (!taken.ok()) return taken;
  return std::unique_ptr<SentencepiecePieces>(std::move(pieces));
}

}  // namespace traind
