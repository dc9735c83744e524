#include "server/retention/state_files.h"

#include <absl/cleanup/cleanup.h>
#include <absl/container/flat_hash_set.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "common/publish/publisher.h"
#include "server/retention/job_needs.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kNoWriterIsSoSlow = absl::Hours(24);
constexpr int64_t kStatBlock = 512;  // the unit of st_blocks

int64_t BytesOf(const struct stat& file) {
  return static_cast<int64_t>(file.st_blocks) * kStatBlock /
         std::max<int64_t>(1, static_cast<int64_t>(file.st_nlink));
}

// Calls visit(path, stat) for each file below the folder.
template <typename Visit>
void ForEachFile(const std::string& folder, Visit visit) {
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    struct stat file = {};
    const std::string path = it->path().string();
    if (lstat(path.c_str(), &file) == 0 && !S_ISDIR(file.st_mode)) visit(path, file);
  }
}

// Reads the writer's process from NAME.tmp-PID-COUNT. Returns false for any other name.
bool IsTemporary(absl::string_view name, int* pid) {
  const size_t mark = name.rfind(kTemporaryMark);
  if (mark == absl::string_view::npos) return false;
  const std::vector<absl::string_view> parts =
      absl::StrSplit(name.substr(mark + sizeof(kTemporaryMark) - 1), '-');
  int64_t count = 0;
  return parts.size() == 2 && absl::SimpleAtoi(parts[0], pid) && absl::SimpleAtoi(parts[1], &count);
}

// Whether a file below the state folder belongs to a Job that is over.
bool IsOfEndedJob(const std::string& state_dir, absl::string_view path) {
  if (!absl::ConsumePrefix(&path, absl::StrCat(state_dir, "/", JobDir("")))) return false;
  const std::string job(path.substr(0, path.find('/')));
  std::error_code error;
  return fs::exists(absl::StrCat(state_dir, "/", EndedMark(job)), error);
}

}  // namespace

int64_t BytesOnDisk(const std::string& path) {
  struct stat root = {};
  if (lstat(path.c_str(), &root) != 0) return 0;
  if (!S_ISDIR(root.st_mode)) return BytesOf(root);
  int64_t bytes = 0;
  ForEachFile(path, [&](const std::string&, const struct stat& file) { bytes += BytesOf(file); });
  return bytes;
}

absl::Status RemoveDurably(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("cannot delete ", path));
  const absl::Status synced = SyncDir(path.substr(0, path.rfind('/')));
  return absl::IsNotFound(synced) ? absl::OkStatus() : synced;
}

FolderUse UseOfJob(const std::string& state_dir, const Job& job) {
  FolderUse use;
  const std::string root = absl::StrCat(state_dir, "/", JobDir(job.id), "/");
  const auto standing = ReadStandingPrediction(state_dir, job.id);
  const absl::flat_hash_set<std::string> needed =
      NeededFolders(job, standing.ok() ? &*standing : nullptr);
  std::error_code no_link;
  const std::string current =
      fs::read_symlink(absl::StrCat(state_dir, "/", CurrentLink(job.id)), no_link).string();
  ForEachFile(root, [&](const std::string& path, const struct stat& file) {
    const int64_t bytes = BytesOf(file);
    use.bytes += bytes;
    const absl::string_view inside = absl::string_view(path).substr(root.size());
    const std::string top(inside.substr(0, inside.find('/')));
    const bool of_attempt = (top == "attempts" || top == "reused") &&
                            !needed.contains(AttemptFolder(inside)) &&
                            !absl::EndsWith(inside, ".log");
    const bool replaced =
        !current.empty() && absl::StartsWith(top, "prediction-") && top != current;
    if (!of_attempt && !replaced) return;
    use.interim_bytes += bytes;
    use.interim.push_back(path);
  });
  return use;
}

absl::Status RotateLog(const std::string& path, int64_t keep_bytes) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  absl::Cleanup closer = [fd] { close(fd); };
  struct stat log = {};
  if (fstat(fd, &log) != 0) return ErrnoStatus(errno, path);
  std::string tail(static_cast<size_t>(std::min<int64_t>(keep_bytes, log.st_size)), '\0');
  const ssize_t got =
      pread(fd, tail.data(), tail.size(), log.st_size - static_cast<off_t>(tail.size()));
  if (got < 0) return ErrnoStatus(errno, absl::StrCat("cannot read ", path));
  tail.resize(static_cast<size_t>(got));
  if (got < log.st_size) tail.erase(0, tail.find('\n') + 1);  // of all if there is no line end
  RETURN_IF_ERROR(WriteFileDurably(path + ".1", tail));
  if (ftruncate(fd, 0) != 0) return ErrnoStatus(errno, absl::StrCat("cannot empty ", path));
  return absl::OkStatus();
}

std::vector<CacheFiles> ListCache(const std::string& state_dir) {
  std::map<std::string, CacheFiles> by_key;
  ForEachFile(absl::StrCat(state_dir, "/", CacheDir()), [&](const std::string& path,
                                                            const struct stat& file) {
    const std::string name = path.substr(path.rfind('/') + 1);
    int pid = 0;
    if (IsTemporary(name, &pid)) return;
    const std::string key = name.substr(0, name.find('.'));
    CacheFiles& entry = by_key[key];
    const absl::Time modified = absl::TimeFromTimespec(file.st_mtim);
    entry.modified = entry.files.empty() ? modified : std::max(entry.modified, modified);
    entry.key = key;
    entry.bytes += BytesOf(file);
    const bool table = path == absl::StrCat(state_dir, "/", TableCachePath(key));
    entry.is_model_file |= path == absl::StrCat(state_dir, "/", ScriptCachePath(key)) ||
                           path == absl::StrCat(state_dir, "/", WeightsCachePath(key));
    entry.files.insert(table ? entry.files.begin() : entry.files.end(), path);
  });
  std::vector<CacheFiles> entries;
  for (auto& [key, entry] : by_key) entries.push_back(std::move(entry));
  return entries;
}

std::vector<CacheFiles> ListUploads(const std::string& state_dir) {
  std::vector<CacheFiles> entries;
  std::error_code error;
  const std::string folder = absl::StrCat(state_dir, "/", kUploadsDir);
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string path = it->path().string();
    struct stat about = {};
    if (lstat(path.c_str(), &about) != 0 || !S_ISDIR(about.st_mode)) continue;
    CacheFiles& entry = entries.emplace_back();
    entry.key = absl::StrCat(kUploadsDir, "/", it->path().filename().string());
    entry.modified = absl::TimeFromTimespec(about.st_mtim);
    entry.bytes = BytesOnDisk(path);
    entry.files.push_back(path);
  }
  return entries;
}

std::vector<TemporaryFile> ListAbandoned(const std::string& state_dir, bool shared,
                                         absl::Time now) {
  std::vector<TemporaryFile> abandoned;
  const auto look = [&](const std::string& path, const struct stat& file) {
    int pid = 0;
    if (!IsTemporary(path.substr(path.rfind('/') + 1), &pid)) return;
    const bool old = now - absl::TimeFromTimespec(file.st_mtim) > kNoWriterIsSoSlow;
    const bool dead = !shared && kill(pid, 0) != 0 && errno == ESRCH;
    // The names of files that arrive tell no process, as they outlive traind.
    const bool refused = pid == 0 && IsOfEndedJob(state_dir, path);
    if (old || dead || refused) abandoned.push_back({path, BytesOf(file)});
  };
  ForEachFile(state_dir, look);
  // With --artifacts these are links, which are not followed.
  for (const std::string& name : {std::string("jobs"), CacheDir(), std::string(kUploadsDir)}) {
    const std::string folder = absl::StrCat(state_dir, "/", name);
    std::error_code error;
    if (fs::is_symlink(folder, error)) ForEachFile(folder, look);
  }
  return abandoned;
}

}  // namespace traind
