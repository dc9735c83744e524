// Look-ups in tables of characters that are in ascending order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/data/text/unicode_tables.h"

namespace traind {

// Returns the entry that c may belong to: the last one that begins at or before it; null if none
// does.
template <class Entry>
const Entry* EntryBefore(const Entry* entries, size_t count, uint32_t c) {
  const Entry* const after =
      std::upper_bound(entries, entries + count, c,
                       [](uint32_t value, const Entry& entry) { return value < entry.first; });
  return after == entries ? nullptr : after - 1;
}

inline bool IsAmong(const CharacterRange* ranges, size_t count, uint32_t c) {
  const CharacterRange* const range = EntryBefore(ranges, count, c);
  return range != nullptr && c <= range->last;
}

}  // namespace traind
