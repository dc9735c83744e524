#include "common/data/text/ngrams.h"

#include "common/data/text/words.h"

namespace traind {
namespace {

constexpr uint32_t kMostCount = 4095;

uint64_t Mix(uint64_t hash) {
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdu;
  hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53u;
  return hash ^ (hash >> 33);
}

// FNV-1a, whose bits are mixed once more because its high bits are weak.
uint64_t Hash(absl::string_view word) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : word) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return Mix(hash);
}

}  // namespace

void NgramCounts::AddBucket(uint64_t hash) {
  const uint32_t bucket = hash % kNgramBuckets;
  const size_t begin = ends_.empty() ? 0 : ends_.back();
  uint32_t& place = place_[bucket];
  if (place == 0) {
    counts_.push_back({bucket, 1});
    place = static_cast<uint32_t>(counts_.size() - begin);
    return;
  }
  NgramCount& known = counts_[begin + place - 1];
  if (known.count < kMostCount) known.count = (known.count + 1) & kMostCount;
}

void NgramCounts::AddPart(absl::string_view text) {
  uint64_t before = 0;
  bool first = true;
  ForEachWord(text, [&](absl::string_view word) {
    const uint64_t hash = Hash(word);
    AddBucket(hash);
    if (!first) AddBucket(Mix(before * 31 + hash));
    before = hash;
    first = false;
  });
}

void NgramCounts::Add(absl::string_view text, size_t most_bytes) {
  place_.resize(kNgramBuckets);
  if (text.size() <= most_bytes) {
    AddPart(text);
  } else {
    AddPart(text.substr(0, most_bytes / 2));
    AddPart(text.substr(text.size() - most_bytes / 2));
  }
  for (size_t i = ends_.empty() ? 0 : ends_.back(); i < counts_.size(); ++i) {
    place_[counts_[i].bucket] = 0;
  }
  ends_.push_back(counts_.size());
}

}  // namespace traind
