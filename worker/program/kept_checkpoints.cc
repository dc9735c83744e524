#include "worker/program/kept_checkpoints.h"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/job_rules/program_rules.h"
#include "common/transfer/whole_copy.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

constexpr char kCopy[] = "kept-";  // with a number that grows
constexpr char kUnfinished[] = "kept.new";
constexpr char kTorn[] = "torn";
constexpr char kMarks[] = "marks.json";
constexpr char kOfHelper[] = "traind-";  // with a number that grows

bool SameMarks(const FileMarks& a, const FileMarks& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) {
           return x.first == y.first && x.second.bytes == y.second.bytes &&
                  x.second.modified_ns == y.second.modified_ns;
         });
}

// Its checkpoints are whole by themselves, and it removes what is unfinished.
bool IsOfHelper(absl::string_view name) {
  return absl::StartsWith(name, kOfHelper) || absl::StartsWith(name, ".traind-");
}

absl::Status Move(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_directories(to.parent_path(), error);
  if (!error) fs::rename(from, to, error);
  return error ? ErrnoStatus(error.value(), to.string()) : absl::OkStatus();
}

}  // namespace

KeptCheckpoints::KeptCheckpoints(std::string dir, std::vector<std::string> patterns)
    : dir_(std::move(dir)), patterns_(std::move(patterns)) {}

std::string KeptCheckpoints::InDir(absl::string_view name) const {
  return absl::StrCat(dir_, "/", name);
}

FileMarks KeptCheckpoints::Find() const {
  FileMarks found;
  const auto matches = [this](const std::string& name) {
    return std::any_of(patterns_.begin(), patterns_.end(), [&name](const std::string& pattern) {
      return MatchesPattern(name, pattern);
    });
  };
  // A folder that the program has removed has no files.
  if (!patterns_.empty()) {
    ForEachFile(InDir("work"), [&](const ResultFile& file) {
      if (matches(file.name)) found[absl::StrCat("work/", file.name)] = MarkOf(file);
    }).IgnoreError();
  }
  ForEachFile(InDir("checkpoints"), [&](const ResultFile& file) {
    if (!IsOfHelper(file.name)) found[absl::StrCat("checkpoints/", file.name)] = MarkOf(file);
  }).IgnoreError();
  return found;
}

bool KeptCheckpoints::Any() const { return !Find().empty(); }

std::string KeptCheckpoints::Last(const std::string& folder, absl::string_view prefix) const {
  int64_t last = 0;
  std::string name;
  std::error_code error;
  for (fs::directory_iterator entries(InDir(folder), error), end; !error && entries != end;
       entries.increment(error)) {
    std::string file = entries->path().filename().string();
    absl::string_view rest = file;
    int64_t number = 0;
    if (!absl::ConsumePrefix(&rest, prefix) || !absl::SimpleAtoi(rest, &number)) continue;
    if (number <= last) continue;
    last = number;
    name = std::move(file);
  }
  return name;
}

std::string KeptCheckpoints::LastCopy() const { return Last("", kCopy); }

std::string KeptCheckpoints::LastOfHelper() const {
  const std::string name = Last("checkpoints", kOfHelper);
  return name.empty() ? "" : absl::StrCat("checkpoints/", name);
}

bool KeptCheckpoints::Keep(absl::Time settled) {
  const FileMarks files = Find();
  if (files.empty()) return false;
  for (const auto& [path, mark] : files) {
    if (mark.modified_ns > absl::ToUnixNanos(settled)) return false;
  }
  const std::string last = LastCopy();
  if (!last.empty()) {
    const auto known = ReadMarks(InDir(absl::StrCat(last, "/", kMarks)));
    if (known.ok() && SameMarks(*known, files)) return false;
  }
  std::error_code error;
  fs::remove_all(InDir(kUnfinished), error);
  for (const auto& [path, mark] : files) {
    const std::string to = InDir(absl::StrCat(kUnfinished, "/", path));
    if (!CopyWhole(InDir(path), to).ok()) return false;
  }
  if (!SameMarks(Find(), files)) return false;  // one was written to meanwhile
  if (!WriteMarks(InDir(absl::StrCat(kUnfinished, "/", kMarks)), files).ok()) return false;
  int64_t number = 0;
  if (!last.empty() && !absl::SimpleAtoi(last.substr(sizeof kCopy - 1), &number)) return false;
  fs::rename(InDir(kUnfinished), InDir(absl::StrCat(kCopy, number + 1)), error);
  if (error) return false;
  if (!last.empty()) fs::remove_all(InDir(last), error);
  return true;
}

absl::Status KeptCheckpoints::PutBack() const {
  const std::string last = LastCopy();
  if (last.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const FileMarks copied, ReadMarks(InDir(absl::StrCat(last, "/", kMarks))));
  for (const auto& [path, mark] : copied) {
    RETURN_IF_ERROR(CopyWhole(InDir(absl::StrCat(last, "/", path)), InDir(path)));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> KeptCheckpoints::SetAside() {
  const std::string last = LastCopy();
  std::error_code error;
  if (last.empty() || fs::exists(InDir(kTorn), error)) return false;
  ASSIGN_OR_RETURN(const FileMarks copied, ReadMarks(InDir(absl::StrCat(last, "/", kMarks))));
  const FileMarks files = Find();
  if (SameMarks(files, copied)) return false;
  RETURN_IF_ERROR(MakeDirs(InDir(kTorn)));
  for (const auto& [path, mark] : files) {
    RETURN_IF_ERROR(Move(InDir(path), InDir(absl::StrCat(kTorn, "/", path))));
  }
  RETURN_IF_ERROR(PutBack());
  return true;
}

}  // namespace traind
