// Which tensors of a file of weights a model's parameters are made of, as text:
//
//   PARAMETER: TENSOR[, TENSOR...]
//
// PARAMETER is a parameter's name; {i} (any word in braces) in it stands for a number, * for
// any text. In the tensors' names the same stand for what they stood for there. Several
// tensors are laid one after the other along the first axis. TENSOR[10:20] is its rows 10 to
// 19 (either end may be left out), TENSOR^T is it transposed, rows before transposition.
// `skip` alone: the parameter keeps its random start.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace traind {

// A tensor of the file, and what is taken of it.
struct MapSource {
  std::string tensor;
  int64_t first_row = 0;
  std::optional<int64_t> end_row;  // none: all rows
  bool transposed = false;
};

// Threads: immutable.
class NameMap {
 public:
  // By parameter. InvalidArgument names the entry and what is wrong with it: an empty name, a
  // word in braces that the parameter does not have, rows that are none.
  static absl::StatusOr<NameMap> Parse(const std::map<std::string, std::string>& entries);

  bool empty() const { return entries_.empty(); }

  struct Match {
    std::string pattern;  // the entry's
    bool skip = false;
    std::vector<MapSource> sources;  // nothing stands for anything else any more
  };
  // What stands for a parameter: the entry of just its name, else the one that matches it,
  // one without an asterisk before one with it; none: no entry does. InvalidArgument: two
  // alike do.
  absl::StatusOr<std::optional<Match>> Find(absl::string_view parameter) const;
  // Patterns that match none of these parameters.
  std::vector<std::string> Unmatched(const std::vector<std::string>& parameters) const;

  // Plain text, a word in braces, or an asterisk.
  struct Piece {
    std::string text;
    bool stands_for = false;  // text is the word, or the asterisk
  };

 private:
  struct Entry {
    std::string pattern;
    std::vector<Piece> pieces;  // the pattern's
    int breadth = 0;            // 0: a name; 1: with words in braces; 2: with an asterisk
    bool skip = false;
    std::vector<MapSource> sources;
  };
  static absl::StatusOr<Entry> ParseEntry(const std::string& pattern, absl::string_view text);

  std::vector<Entry> entries_;
};

}  // namespace traind
