// YAML text as a tree that keeps what yaml-cpp's own nodes lose: the place of
// every key and value, duplicate keys, and whether a scalar was quoted.
#pragma once

#include <absl/strings/string_view.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace traind {

struct YamlNode {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  int source = 0;  // which text it comes from, see YamlTree::Parse
  int line = 1;    // both from 1; the column counts characters
  int column = 1;
  std::string text;     // kScalar
  bool quoted = false;  // kScalar: text, whatever it looks like
  // Children by index into the tree; an aliased node has several parents.
  std::vector<int> items;                    // kList
  std::vector<std::pair<int, int>> entries;  // kMap: keys and values in order, as written
};

struct YamlError {
  int source = 0;
  int line = 1;
  int column = 1;
  std::string message;
};

// Nodes are referred to by index and never removed. Acyclic.
// Threads: confined to one.
class YamlTree {
 public:
  static constexpr size_t kMostBytes = 1 << 20;
  static constexpr int kMostDepth = 32;

  // Adds the nodes of a document; the index of its root, or the first error. A
  // text without any node is a null.
  std::optional<int> Parse(absl::string_view text, int source, YamlError& error);

  // Returns false and sets the place and the message of `error` where the text is not UTF-8 or has a
  // control character.
  static bool CheckCharacters(absl::string_view text, YamlError& error);

  int Add(YamlNode node) {
    nodes_.push_back(std::move(node));
    return static_cast<int>(nodes_.size()) - 1;
  }
  const YamlNode& at(int index) const { return nodes_[index]; }
  YamlNode& at(int index) { return nodes_[index]; }
  size_t size() const { return nodes_.size(); }

 private:
  std::vector<YamlNode> nodes_;
};

}  // namespace traind
