#include "common/data/text/character_map.h"

#include <cstring>

namespace traind {

// The bytes are the trie's size in bytes (uint32), the trie, then the replacement texts.
std::optional<CharacterMap> CharacterMap::Parse(absl::string_view bytes) {
  CharacterMap map;
  if (bytes.empty()) return map;
  uint32_t size = 0;
  if (bytes.size() < sizeof size) return std::nullopt;
  std::memcpy(&size, bytes.data(), sizeof size);
  bytes.remove_prefix(sizeof size);
  if (size > bytes.size() || size % sizeof(uint32_t) != 0 || size == 0) return std::nullopt;
  map.units_.resize(size / sizeof(uint32_t));
  std::memcpy(map.units_.data(), bytes.data(), size);
  map.texts_ = std::string(bytes.substr(size));
  map.texts_.push_back('\0');
  return map;
}

// The map is a double array as in Darts-clone (Yata 2008).
CharacterMap::Prefix CharacterMap::Find(absl::string_view text, bool longest) const {
  const auto offset = [](uint32_t unit) { return unit >> 10 << ((unit & 1u << 9) >> 6); };
  Prefix found;
  if (units_.empty()) return found;
  size_t at = offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    at ^= byte;
    if (at >= units_.size()) break;
    const uint32_t unit = units_[at];
    if ((unit & (1u << 31 | 0xffu)) != byte) break;
    at ^= offset(unit);
    if ((unit >> 8 & 1u) == 0) continue;
    if (at >= units_.size()) break;
    const size_t place = units_[at] & 0x7fffffffu;
    if (place < texts_.size()) found = {texts_.c_str() + place, i + 1};
    if (!longest && found.bytes > 0) break;
  }
  return found;
}

}  // namespace traind
