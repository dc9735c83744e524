#include "common/transfer/state_path.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>
#include <errno.h>
#include <sys/stat.h>

#include <algorithm>
#include <vector>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/transfer/program_pack.h"

namespace traind {
namespace {

constexpr size_t kLongestPath = 512;

bool IsPlainName(absl::string_view name) {
  return !name.empty() && name[0] != '.' &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) {
                       return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
                     }) &&
         !absl::StrContains(name, kTemporaryMark);
}

bool IsNumber(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

// What PREPARE writes besides tables: decoded media, and copies of users' modules and weights.
bool IsCached(absl::string_view name) {
  return absl::EndsWith(name, ".table") || absl::EndsWith(name, ".images") ||
         absl::EndsWith(name, ".volumes") || absl::EndsWith(name, ".pt") ||
         absl::EndsWith(name, ".safetensors");
}

// inside: relative to the Job's folder.
bool TravelsFromJob(std::vector<absl::string_view> inside, const std::string& path,
                    const std::string& job, Direction direction) {
  if (inside.size() == 1) {
    return path == FoldsPath(job) || path == SamplesPath(job) || path == PredictionFormPath(job) ||
           (absl::StartsWith(inside[0], "tokenizer-") && absl::EndsWith(inside[0], ".model"));
  }
  if (inside.size() == 2 && inside[1] == kManifestFile && direction == Direction::kToWorker) {
    return absl::ConsumePrefix(&inside[0], "prediction-") && IsNumber(inside[0]);
  }
  if (inside.size() == 2) return inside[0] == "floor" || ProgramPackAt(path, job).has_value();
  if (inside.size() != 3 || !IsNumber(inside[1])) return false;
  return inside[0] == "attempts" || (inside[0] == "reused" && direction == Direction::kToWorker);
}

}  // namespace

bool Travels(absl::string_view path, const std::string& job, Direction direction) {
  if (path.size() > kLongestPath) return false;
  std::vector<absl::string_view> parts = absl::StrSplit(path, '/');
  if (!std::all_of(parts.begin(), parts.end(), IsPlainName) || parts.size() < 2) return false;
  if (parts[0] == CacheDir()) return parts.size() == 2 && IsCached(parts[1]);
  if (parts.size() < 3 || absl::StrCat(parts[0], "/", parts[1]) != JobDir(job)) return false;
  parts.erase(parts.begin(), parts.begin() + 2);
  return TravelsFromJob(parts, std::string(path), job, direction);
}

absl::Status CheckStatePath(const std::string& state_dir, const std::string& path,
                            const std::string& job, Direction direction) {
  if (!Travels(path, job, direction)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' is no file that travels for job ", job));
  }
  for (size_t end = path.find('/');; end = path.find('/', end + 1)) {
    const std::string prefix = absl::StrCat(state_dir, "/", path.substr(0, end));
    struct stat info = {};
    if (lstat(prefix.c_str(), &info) != 0) {
      return errno == ENOENT ? absl::OkStatus() : ErrnoStatus(errno, path);
    }
    if (S_ISLNK(info.st_mode)) {
      return absl::PermissionDeniedError(absl::StrCat("'", path, "' leads over a link"));
    }
    if (end == std::string::npos) return absl::OkStatus();
  }
}

}  // namespace traind
