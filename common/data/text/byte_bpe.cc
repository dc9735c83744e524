#include <absl/status/status.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <array>
#include <limits>
#include <optional>
#include <queue>

#include "common/base/status_macros.h"
#include "common/data/text/characters.h"
#include "common/data/text/text_pieces.h"

namespace traind {
namespace {

constexpr uint32_t kBytes = 256;

// The letters that stand for bytes in the files: printable ones for themselves, the others for
// those from U+0100 on, in order.
std::array<uint32_t, kBytes> Letters() {
  std::array<uint32_t, kBytes> letters{};
  uint32_t next = kBytes;
  for (uint32_t byte = 0; byte < kBytes; ++byte) {
    const bool itself = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) ||
                        (byte >= 0xae && byte <= 0xff);
    letters[byte] = itself ? byte : next++;
  }
  return letters;
}

enum class Class { kBlank, kLetter, kNumber, kOther };

Class ClassOf(uint32_t c) {
  if (IsBlank(c)) return Class::kBlank;
  if (IsLetter(c)) return Class::kLetter;
  return IsNumber(c) ? Class::kNumber : Class::kOther;
}

// Returns the bytes of the first word by GPT-2's expression
// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// REQUIRES: text is not empty.
size_t FirstWord(absl::string_view text) {
  for (const char* const ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (absl::StartsWith(text, ending)) return absl::string_view(ending).size();
  }
  size_t at = text[0] == ' ' ? 1 : 0;
  if (at < text.size()) {
    const Class kind = ClassOf(FirstCharacter(text.substr(at)).value);
    if (kind != Class::kBlank) {
      while (at < text.size()) {
        const Character c = FirstCharacter(text.substr(at));
        if (ClassOf(c.value) != kind) break;
        at += c.bytes;
      }
      return at;
    }
  }
  // Blanks, without the last one where a word follows.
  size_t last = 0;
  for (at = 0; at < text.size();) {
    const Character c = FirstCharacter(text.substr(at));
    if (!IsBlank(c.value)) return last > 0 ? last : at;
    last = at;
    at += c.bytes;
  }
  return at;
}

class ByteBpeCutter final : public TextPieces {
 public:
  ByteBpeCutter(const ByteBpeOptions& options, const Vocabulary& vocabulary) : options_(options) {
    const std::array<uint32_t, kBytes> letters = Letters();
    for (uint32_t byte = 0; byte < kBytes; ++byte) {
      byte_of_[letters[byte]] = static_cast<char>(byte);
    }
    for (const auto& [text, id] : vocabulary) {
      if (const auto bytes = BytesOf(text)) ids_.emplace(*bytes, id);
    }
  }

  absl::Status Add(const std::vector<std::pair<std::string, std::string>>& merges) {
    for (uint32_t byte = 0; byte < kBytes; ++byte) {
      const auto found = ids_.find(std::string(1, static_cast<char>(byte)));
      if (found == ids_.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat("the vocabulary has no piece for byte ", byte));
      }
      of_byte_[byte] = found->second;
    }
    int32_t rank = 0;
    for (const auto& [left, right] : merges) {
      const auto id = [this](const std::string& text) {
        const auto bytes = BytesOf(text);
        const auto found = bytes.has_value() ? ids_.find(*bytes) : ids_.end();
        return found == ids_.end() ? -1 : found->second;
      };
      const Merge merge = {rank++, id(absl::StrCat(left, right))};
      const int32_t first = id(left), second = id(right);
      if (first < 0 || second < 0 || merge.id < 0) {
        return absl::InvalidArgumentError(absl::StrCat("merge ", rank, ", of '", left, "' and '",
                                                       right, "', is not of the vocabulary"));
      }
      merges_.insert_or_assign({first, second}, merge);
    }
    return absl::OkStatus();
  }

  void Encode(absl::string_view text, std::vector<int32_t>& ids) const override {
    std::string longer;
    if (options_.blank_before && !text.empty() && text[0] != ' ') {
      longer = absl::StrCat(" ", text);
      text = longer;
    }
    while (!text.empty()) {
      const size_t word = FirstWord(text);
      EncodeWord(text.substr(0, word), ids);
      text.remove_prefix(word);
    }
  }

 private:
  struct Merge {
    int32_t rank = 0, id = 0;
  };
  struct Symbol {
    int32_t id = 0, before = -1, after = -1;
  };
  struct Candidate {
    int32_t rank, at, id, left, right;
    // The queue gives the largest first: the lowest rank, the leftmost of equals.
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };

  std::optional<std::string> BytesOf(absl::string_view letters) const {
    std::string bytes;
    while (!letters.empty()) {
      const Character c = FirstCharacter(letters);
      letters.remove_prefix(c.bytes);
      const auto found = byte_of_.find(c.value);
      if (found == byte_of_.end()) return std::nullopt;
      bytes.push_back(found->second);
    }
    return bytes;
  }

  void EncodeWord(absl::string_view word, std::vector<int32_t>& ids) const {
    if (options_.whole_words) {
      if (const auto found = ids_.find(word); found != ids_.end()) {
        return ids.push_back(found->second);
      }
    }
    std::vector<Symbol> symbols(word.size());
    for (size_t i = 0; i < word.size(); ++i) {
      const auto at = static_cast<int32_t>(i);
      symbols[i] = {of_byte_[static_cast<unsigned char>(word[i])], at - 1,
                    i + 1 < word.size() ? at + 1 : -1};
    }
    Join(symbols);
    for (int32_t at = 0; at >= 0; at = symbols[static_cast<size_t>(at)].after) {
      ids.push_back(symbols[static_cast<size_t>(at)].id);
    }
  }

  void Join(std::vector<Symbol>& symbols) const {
    std::priority_queue<Candidate> queue;
    const auto symbol = [&](int32_t at) -> Symbol& { return symbols[static_cast<size_t>(at)]; };
    const auto look = [&](int32_t left) {
      if (left < 0 || symbol(left).after < 0) return;
      const int32_t first = symbol(left).id, second = symbol(symbol(left).after).id;
      const auto found = merges_.find({first, second});
      if (found == merges_.end()) return;
      queue.push({found->second.rank, left, found->second.id, first, second});
    };
    for (size_t i = 0; i + 1 < symbols.size(); ++i) look(static_cast<int32_t>(i));
    while (!queue.empty()) {
      const Candidate best = queue.top();
      queue.pop();
      Symbol& left = symbol(best.at);
      // Another merge may have changed either of the two.
      if (left.id != best.left || left.after < 0 || symbol(left.after).id != best.right) continue;
      Symbol& right = symbol(left.after);
      right.id = -1;
      left.id = best.id;
      left.after = right.after;
      if (left.after >= 0) symbol(left.after).before = best.at;
      look(left.before);
      look(best.at);
    }
  }

  const ByteBpeOptions options_;
  absl::flat_hash_map<uint32_t, char> byte_of_;
  absl::flat_hash_map<std::string, int32_t> ids_;  // by bytes
  std::array<int32_t, kBytes> of_byte_{};
  absl::flat_hash_map<std::pair<int32_t, int32_t>, Merge> merges_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TextPieces>> ByteBpe(
    const ByteBpeOptions& options, const Vocabulary& vocabulary,
    const std::vector<std::pair<std::string, std::string>>& merges) {
  auto cutter = std::make_unique<ByteBpeCutter>(options, vocabulary);
  RETURN_IF_ERROR(cutter->Add(merges));
  return cutter;
}

}  // namespace traind
