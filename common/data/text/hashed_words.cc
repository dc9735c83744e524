#include "common/data/text/hashed_words.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "common/data/text/words.h"

namespace traind {
namespace {

// FNV-1a, whose bits are mixed once more because its high bits are weak.
uint64_t Hash(absl::string_view word) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : word) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdu;
  return hash ^ (hash >> 33);
}

}  // namespace

void HashWords(absl::string_view text, absl::Span<float> cells) {
  std::fill(cells.begin(), cells.end(), 0.0f);
  ForEachWord(text, [&](absl::string_view word) {
    const uint64_t hash = Hash(word);
    cells[hash % cells.size()] += (hash >> 63) != 0 ? 1.0f : -1.0f;
  });
  double squares = 0;
  for (float& cell : cells) {
    cell = std::copysign(std::log1p(std::fabs(cell)), cell);
    squares += static_cast<double>(cell) * cell;
  }
  if (squares == 0) return;
  const auto factor = static_cast<float>(1.0 / std::sqrt(squares));
  for (float& cell : cells) cell *= factor;
}

}  // namespace traind
