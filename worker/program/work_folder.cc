#include "worker/program/work_folder.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/job_rules/ignore_rules.h"
#include "common/job_rules/program_folder.h"
#include "common/job_rules/program_rules.h"
#include "common/transfer/whole_copy.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLargestCopied = 1 << 20;
constexpr int kMostCopied = 20'000;
constexpr int64_t kMostCopiedBytes = 256 << 20;
constexpr char kCodeDigest[] = "code.sha256";

absl::Status Failed(const std::error_code& error, const fs::path& path) {
  return ErrnoStatus(error.value(), path.string());
}

FileMark MarkOf(const struct stat& info) {
  return {info.st_size, int64_t{1'000'000'000} * info.st_mtim.tv_sec + info.st_mtim.tv_nsec};
}

bool MatchesOneOf(const std::string& name, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&name](const std::string& pattern) { return MatchesPattern(name, pattern); });
}

// Copies a folder, file by file.
class FolderCopy {
 public:
  FolderCopy(std::string left_out, IgnoreRules rules, std::vector<std::string> written)
      : left_out_(std::move(left_out)), rules_(std::move(rules)), written_(std::move(written)) {}

  absl::Status Copy(const fs::path& from, const fs::path& to, const std::string& prefix) {
    std::error_code error;
    if (!fs::create_directory(to, error) && error) return Failed(error, to);
    fs::directory_iterator entries(from, error);
    if (error) return Failed(error, from);
    for (; entries != fs::directory_iterator(); entries.increment(error)) {
      RETURN_IF_ERROR(CopyEntry(*entries, to, prefix));
    }
    return error ? Failed(error, from) : absl::OkStatus();
  }

  // Of all entries, whatever their order in the folder was.
  std::string Digest() const {
    std::string all;
    for (const auto& [name, content] : contents_) {
      absl::StrAppend(&all, name, std::string(1, '\0'), content, "\n");
    }
    return Sha256Hex(all);
  }

  FileMarks marks;

 private:
  absl::Status CopyEntry(const fs::directory_entry& entry, const fs::path& to,
                         const std::string& prefix) {
    const std::string name = entry.path().filename().string();
    std::error_code error;
    struct stat info;
    if (entry.path() == left_out_ || name == kCompiled) return absl::OkStatus();
    if (lstat(entry.path().c_str(), &info) != 0) return absl::OkStatus();  // gone meanwhile
    if (rules_.Ignores(prefix + name, S_ISDIR(info.st_mode))) return absl::OkStatus();
    if (S_ISDIR(info.st_mode) && !IsOfTools(name) && CopiesMore()) {
      return Copy(entry.path(), to / name, absl::StrCat(prefix, name, "/"));
    }
    const bool own = S_ISREG(info.st_mode) && MatchesOneOf(prefix + name, written_);
    if (own || (S_ISREG(info.st_mode) && info.st_size <= kLargestCopied && CopiesMore())) {
      ++copied_;
      copied_bytes_ += info.st_size;
      fs::copy_file(entry.path(), to / name, error);
      if (error) return Failed(error, to / name);
      ASSIGN_OR_RETURN(const FileDigest digest, DigestFile((to / name).string()));
      contents_[prefix + name] =
          absl::StrCat((info.st_mode & S_IXUSR) != 0 ? "x " : "- ", digest.sha256);
      if (stat((to / name).c_str(), &info) == 0) marks[prefix + name] = MarkOf(info);
      return absl::OkStatus();
    }
    if (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode)) {
      return absl::OkStatus();  // sockets and pipes
    }
    // Reading what lies behind a link could take minutes.
    contents_[prefix + name] = absl::StrCat("link ", S_ISREG(info.st_mode) ? info.st_size : 0, " ",
                                            S_ISREG(info.st_mode) ? MarkOf(info).modified_ns : 0);
    fs::create_symlink(entry.path(), to / name, error);
    return error ? Failed(error, to / name) : absl::OkStatus();
  }

  bool CopiesMore() const { return copied_ < kMostCopied && copied_bytes_ < kMostCopiedBytes; }

  const fs::path left_out_;
  const IgnoreRules rules_;
  const std::vector<std::string> written_;
  std::map<std::string, std::string> contents_;  // by path in the folder
  int copied_ = 0;
  int64_t copied_bytes_ = 0;
};

std::string ToText(const FileMarks& marks) {
  nlohmann::json object = nlohmann::json::object();
  for (const auto& [name, mark] : marks) object[name] = {mark.bytes, mark.modified_ns};
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

FileMark MarkOf(const ResultFile& file) { return {file.bytes, file.modified_ns}; }

absl::Status WriteMarks(const std::string& path, const FileMarks& marks) {
  return WriteFileDurably(path, ToText(marks));
}

absl::StatusOr<FileMarks> ReadMarks(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const nlohmann::json object = nlohmann::json::parse(text, nullptr, false);
  if (!object.is_object()) return absl::DataLossError(absl::StrCat(path, " is damaged"));
  FileMarks marks;
  for (const auto& [name, mark] : object.items()) {
    if (!mark.is_array() || mark.size() != 2 || !mark[0].is_number_integer() ||
        !mark[1].is_number_integer()) {
      return absl::DataLossError(absl::StrCat(path, " is damaged"));
    }
    marks[name] = {mark[0].get<int64_t>(), mark[1].get<int64_t>()};
  }
  return marks;
}

absl::Status ForEachFile(const std::string& folder,
                         const std::function<void(const ResultFile&)>& take) {
  std::error_code error;
  fs::recursive_directory_iterator entries(folder, error);
  if (error) return Failed(error, folder);
  for (; entries != fs::recursive_directory_iterator(); entries.increment(error)) {
    if (error) return Failed(error, folder);
    struct stat info;
    if (lstat(entries->path().c_str(), &info) != 0) continue;
    if (S_ISDIR(info.st_mode) && entries->path().filename() == kCompiled) {
      entries.disable_recursion_pending();
    }
    if (S_ISREG(info.st_mode)) {
      take({entries->path().lexically_relative(folder).string(), entries->path().string(),
            info.st_size, MarkOf(info).modified_ns});
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<FileMarks> MakeWorkFolder(const std::string& origin, const std::string& dir,
                                         const std::string& left_out,
                                         const std::vector<std::string>& written) {
  const fs::path work = fs::path(dir) / "work", begun = fs::path(dir) / "work.new";
  const std::string marks = absl::StrCat(dir, "/origin.json");
  std::error_code error;
  if (fs::exists(marks, error) && fs::exists(work, error)) return ReadMarks(marks);
  RETURN_IF_ERROR(MakeDirs(dir));
  fs::remove_all(begun, error);
  fs::remove_all(work, error);
  FolderCopy copy(left_out,
                  IgnoreRules(ReadFile(absl::StrCat(origin, "/", kIgnoreFile)).value_or("")),
                  written);
  RETURN_IF_ERROR(copy.Copy(origin, begun, ""));
  RETURN_IF_ERROR(WriteFileDurably(absl::StrCat(dir, "/", kCodeDigest), copy.Digest()));
  fs::rename(begun, work, error);
  if (error) return Failed(error, work);
  RETURN_IF_ERROR(WriteMarks(marks, copy.marks));
  return std::move(copy.marks);
}

std::string DigestOfCode(const std::string& dir) {
  return ReadFile(absl::StrCat(dir, "/", kCodeDigest)).value_or("");
}

absl::StatusOr<FileMarks> MarkAgain(const std::string& dir) {
  FileMarks marks;
  RETURN_IF_ERROR(ForEachFile(
      dir + "/work", [&marks](const ResultFile& file) { marks[file.name] = MarkOf(file); }));
  RETURN_IF_ERROR(WriteMarks(dir + "/origin.json", marks));
  return marks;
}

absl::StatusOr<std::vector<ResultFile>> FindResults(const std::string& work, const FileMarks& marks,
                                                    const std::string& out,
                                                    const std::vector<std::string>& wanted,
                                                    size_t* left_out) {
  std::map<std::string, ResultFile> matched, others;
  size_t too_many = 0;
  bool crowded = false;
  const auto take = [&](const ResultFile& file) {
    const bool is_wanted = MatchesOneOf(file.name, wanted);
    std::map<std::string, ResultFile>& found = is_wanted ? matched : others;
    found[file.name] = file;
    if (found.size() <= kMostResults) return;
    found.erase(std::prev(found.end()));
    if (!is_wanted) ++too_many;
    crowded = crowded || is_wanted;
  };
  RETURN_IF_ERROR(ForEachFile(work, [&](const ResultFile& file) {
    const auto before = marks.find(file.name);
    const bool same = before != marks.end() && before->second.bytes == file.bytes &&
                      before->second.modified_ns == file.modified_ns;
    if (!same) take(file);
  }));
  RETURN_IF_ERROR(ForEachFile(out, take));
  if (crowded) {
    return absl::InvalidArgumentError(absl::StrCat("more than ", kMostResults, " files match '",
                                                   absl::StrJoin(wanted, "', '"), "'; name fewer"));
  }
  while (matched.size() + others.size() > kMostResults) {
    others.erase(std::prev(others.end()));
    ++too_many;
  }
  if (left_out != nullptr) *left_out = too_many;
  others.merge(matched);
  std::vector<ResultFile> results;
  for (auto& [name, file] : others) results.push_back(std::move(file));
  return results;
}

std::vector<ResultFile> Matched(const std::vector<ResultFile>& results,
                                const std::vector<std::string>& patterns) {
  std::vector<ResultFile> matched;
  for (const ResultFile& file : results) {
    if (MatchesOneOf(file.name, patterns)) matched.push_back(file);
  }
  return matched;
}

std::vector<std::string> Unmatched(const std::vector<ResultFile>& results,
                                   const std::vector<std::string>& patterns) {
  std::vector<std::string> unmatched;
  for (const std::string& pattern : patterns) {
    const bool matched = std::any_of(results.begin(), results.end(), [&](const ResultFile& file) {
      return file.bytes > 0 && MatchesPattern(file.name, pattern);
    });
    if (!matched) unmatched.push_back(pattern);
  }
  return unmatched;
}

absl::Status CopyResults(const std::vector<ResultFile>& results, const std::string& to) {
  for (const ResultFile& file : results) {
    RETURN_IF_ERROR(CopyWhole(file.path, absl::StrCat(to, "/", file.name)));
  }
  return absl::OkStatus();
}

}  // namespace traind
