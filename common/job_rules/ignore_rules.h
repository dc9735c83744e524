// What of a folder a program does not get: the lines of a file .traindignore.
#pragma once

#include <absl/strings/string_view.h>

#include <string>
#include <vector>

namespace traind {

// In a program's folder.
inline constexpr char kIgnoreFile[] = ".traindignore";

// The lines have the form of a .gitignore: a pattern each, of which the last that matches counts.
// # begins a comment and ! takes back what an earlier line ignores. A pattern with a slash that is
// not its last character is about the path in the folder, another one about a name at any depth. A
// slash at the end says that it is about folders alone. *, ? and [...] match within a name, and **
// any number of folders. What lies in an ignored folder is ignored and cannot be taken back.
// Threads: safe, it never changes.
class IgnoreRules {
 public:
  explicit IgnoreRules(absl::string_view text = "");

  // path: in the folder, without a slash at its beginning or end. REQUIRES: the folders that it
  // lies in are not ignored.
  bool Ignores(absl::string_view path, bool is_folder) const;

 private:
  struct Rule {
    std::vector<std::string> parts;  // of the pattern, between its slashes
    bool takes_back = false;
    bool folders_alone = false;
  };
  std::vector<Rule> rules_;
};

}  // namespace traind
