// The folder in which a program works: a copy of the user's, kept over restarts, and what of it
// goes back.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace traind {

// A file as it was before the program ran.
struct FileMark {
  int64_t bytes = 0;
  int64_t modified_ns = 0;
};
using FileMarks = std::map<std::string, FileMark>;  // by path in the folder
absl::StatusOr<FileMarks> ReadMarks(const std::string& path);
absl::Status WriteMarks(const std::string& path, const FileMarks& marks);

// Makes `dir`/work from the folder `origin`, unless it is there already, and returns the marks of
// its files. Files of at most 1 MiB are copied. Larger ones, folders that hold no code of the
// program (.git, .venv, node_modules and the like) and whatever is beyond 20,000 files or 256 MiB
// are links to the originals; of those that match a pattern of `written`, because the program
// writes them, there are copies all the same. Not in the copy are `left_out`, the state folder
// where it lies in origin, and what IgnoreRules of origin ignore. Errors: those of the file system,
// with the path.
absl::StatusOr<FileMarks> MakeWorkFolder(const std::string& origin, const std::string& dir,
                                         const std::string& left_out,
                                         const std::vector<std::string>& written = {});

// Returns the SHA-256, in hex, of what MakeWorkFolder has copied to `dir`/work: names, contents and
// which files are programs; of links to large files their sizes and times. Empty: it is not known.
std::string DigestOfCode(const std::string& dir);

// A file that a program has left.
struct ResultFile {
  std::string name;  // relative to the folder that it was found in
  std::string path;  // absolute
  int64_t bytes = 0;
  int64_t modified_ns = 0;
};

FileMark MarkOf(const ResultFile& file);

// Takes the files of `dir`/work as they are now for those that were there before the program ran,
// and returns their marks.
absl::StatusOr<FileMarks> MarkAgain(const std::string& dir);

// The files of `work` that are new or have changed, and all of `out`, in the order of their names.
// A name that is in both is that of `out`. Links are left out. At most kMostResults: those that
// match one of `wanted` go first, and `left_out` counts the others.
// Errors: InvalidArgument: more than kMostResults match; those of reading.
inline constexpr size_t kMostResults = 10'000;
absl::StatusOr<std::vector<ResultFile>> FindResults(const std::string& work, const FileMarks& marks,
                                                    const std::string& out,
                                                    const std::vector<std::string>& wanted = {},
                                                    size_t* left_out = nullptr);

// Calls take() for each regular file below a folder; links are left out.
absl::Status ForEachFile(const std::string& folder,
                         const std::function<void(const ResultFile&)>& take);

// Those that one of the patterns matches.
std::vector<ResultFile> Matched(const std::vector<ResultFile>& results,
                                const std::vector<std::string>& patterns);

// Returns the patterns that no file matches, or only empty ones.
std::vector<std::string> Unmatched(const std::vector<ResultFile>& results,
                                   const std::vector<std::string>& patterns);

// Copies the files to the folder `to`, each whole or not at all. Errors: those of writing.
absl::Status CopyResults(const std::vector<ResultFile>& results, const std::string& to);

}  // namespace traind
