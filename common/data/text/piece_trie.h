// A byte trie over texts.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <vector>

namespace traind {

// Finds the stored texts that a text begins with.
// Threads: confined to one while texts are added, then safe to share.
class PieceTrie {
 public:
  // Returns false if the text is there already.
  bool Add(absl::string_view text, int32_t id) {
    int32_t node = 0;
    for (const char c : text) {
      const auto [found, added] =
          children_.emplace(Key(node, c), static_cast<int32_t>(ends_.size()));
      if (added) ends_.push_back(-1);
      node = found->second;
    }
    int32_t& end = ends_[static_cast<size_t>(node)];
    if (end >= 0) return false;
    end = id;
    return true;
  }

  // Calls use(bytes, id) for each stored text that `text` begins with, the shortest first.
  template <class Use>
  void ForEachPrefix(absl::string_view text, const Use& use) const {
    int32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      const auto child = children_.find(Key(node, text[i]));
      if (child == children_.end()) return;
      node = child->second;
      if (ends_[static_cast<size_t>(node)] >= 0) use(i + 1, ends_[static_cast<size_t>(node)]);
    }
  }

 private:
  static uint64_t Key(int32_t node, char byte) {
    return static_cast<uint64_t>(node) << 8 | static_cast<unsigned char>(byte);
  }

  absl::flat_hash_map<uint64_t, int32_t> children_;
  std::vector<int32_t> ends_{-1};  // [node]: id of the text that ends there, or -1; the root is 0
};

}  // namespace traind
