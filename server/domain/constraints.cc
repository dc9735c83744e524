#include "server/domain/constraints.h"

#include <absl/strings/ascii.h>

namespace traind {
namespace {

// What drivers, error correction and units of 10^9 take away: an L4 of "24 GB" tells 22.5 GiB, a T4
// of "16 GB" 14.8 GiB.
constexpr double kLeastShare = 0.92;

}  // namespace

bool NamesGpu(absl::string_view name, absl::string_view words) {
  if (words.empty()) return true;
  const auto ends_word = [&name](size_t at) {
    return at >= name.size() || !absl::ascii_isalnum(static_cast<unsigned char>(name[at]));
  };
  for (size_t at = name.find(words); at != name.npos; at = name.find(words, at + 1)) {
    if ((at == 0 || ends_word(at - 1)) && ends_word(at + words.size())) return true;
  }
  return false;
}

bool HoldsNominally(int64_t told_bytes, int64_t nominal_bytes) {
  return static_cast<double>(told_bytes) >= kLeastShare * static_cast<double>(nominal_bytes);
}

}  // namespace traind
