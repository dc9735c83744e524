// A text that says which tensors of a weights file each parameter of a model is loaded from:
//
//   PARAMETER: TENSOR[, TENSOR...]
//
// PARAMETER is a parameter's name, in which {i} (any word in braces) matches a number and * matches
// any text. In the tensors' names the same wildcards are replaced by what they matched. Several
// tensors are concatenated along the first axis. TENSOR[10:20] means its rows 10 to 19 (either end
// may be left out), TENSOR^T its transpose; rows are taken before transposing. `skip` alone means
// that the parameter keeps its random initial value.
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

// A tensor of the file, and the part of it that is used.
struct MapSource {
  std::string tensor;
  int64_t first_row = 0;
  std::optional<int64_t> end_row;  // none: all rows
  bool transposed = false;
};

// The entries of such a text, parsed.
// Threads: immutable.
class NameMap {
 public:
  // Entries are keyed by parameter. InvalidArgument names the entry and what is wrong with it: an
  // empty name, a word in braces that the parameter does not have, or an invalid range of rows.
  static absl::StatusOr<NameMap> Parse(const std::map<std::string, std::string>& entries);

  bool empty() const { return entries_.empty(); }

  struct Match {
    std::string pattern;  // the entry's
    bool skip = false;
    std::vector<MapSource> sources;  // with all wildcards filled in
  };
  // Finds the entry for a parameter: the one with exactly its name, else a matching one without an
  // asterisk, else one with it; nullopt if no entry matches. InvalidArgument: two equally specific
  // entries match.
  absl::StatusOr<std::optional<Match>> Find(absl::string_view parameter) const;
  // Returns the patterns that match none of these parameters.
  std::vector<std::string> Unmatched(const std::vector<std::string>& parameters) const;

  // Plain text, a word in braces, or an asterisk.
  struct Piece {
    std::string text;
    bool stands_for = false;  // text is a wildcard: the word in braces, or the asterisk
  };

 private:
  struct Entry {
    std::string pattern;
    std::vector<Piece> pieces;  // the pattern's
    int breadth = 0;            // 0: a plain name; 1: with words in braces; 2: with an asterisk
    bool skip = false;
    std::vector<MapSource> sources;
  };
  static absl::StatusOr<Entry> ParseEntry(const std::string& pattern, absl::string_view text);

  std::vector<Entry> entries_;
};

}  // namespace traind
