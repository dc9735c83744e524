#include "server/archive/file_mirror.h"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/escaping.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <set>
#include <system_error>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kGiveEvery = absl::Seconds(1);
constexpr absl::Duration kGetEvery = absl::Seconds(5);
constexpr absl::Duration kAway = absl::Seconds(10);
constexpr absl::Duration kAfterAnError = absl::Seconds(5);
// A walk through many files takes no more than this share of a core.
constexpr int kWalkShare = 10;
constexpr int64_t kLargeBytes = int64_t{8} << 20;
constexpr int64_t kMostAtOnce = int64_t{16} << 20;
constexpr int kConnections = 8;
// For files that are written little by little.
constexpr absl::Duration kQuiet = absl::Seconds(10);
constexpr char kLinkSuffix[] = "@link";

const std::vector<std::string>& Roots() {
  static const auto* const roots =
      new std::vector<std::string>{"jobs", CacheDir(), std::string(kUploadsDir)};
  return *roots;
}

// Whether the key is that of a path below one of the folders. Keys come from outside.
bool IsOurs(const std::string& key) {
  const std::vector<absl::string_view> words = absl::StrSplit(key, '/');
  if (words.size() < 2 || std::find(Roots().begin(), Roots().end(), words[0]) == Roots().end()) {
    return false;
  }
  for (const absl::string_view word : words) {
    if (word.empty() || word == "." || word == "..") return false;
  }
  return !absl::StrContains(key, kTemporaryMark) && !absl::StrContains(key, '\0');
}

// The links that go: jobs/<job>/current.
bool IsCurrentLink(absl::string_view path) {
  const std::vector<absl::string_view> words = absl::StrSplit(path, '/');
  return words.size() == 3 && words[0] == "jobs" && path == CurrentLink(std::string(words[1]));
}

bool IsLinkKey(absl::string_view key) {
  return absl::ConsumeSuffix(&key, kLinkSuffix) && IsCurrentLink(key);
}

bool IsPredictionName(absl::string_view name) {
  return absl::StartsWith(name, "prediction-") && !absl::StrContains(name, '/');
}

// Whether the file grows, or is written by somebody else's program.
bool IsWrittenSlowly(absl::string_view key) {
  return absl::EndsWith(key, ".log") || absl::StrContains(key, "/program/");
}

bool Stays(absl::string_view name) {
  return absl::StrContains(name, kTemporaryMark) || absl::EndsWith(name, ".lock") ||
         absl::EndsWith(name, ".part");
}

// Empty: it cannot be read.
std::string Md5OfFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return "";
  const absl::Cleanup closer = [fd] { close(fd); };
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> md5(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  EVP_DigestInit_ex(md5.get(), EVP_md5(), nullptr);
  std::string block(1 << 20, '\0');
  while (true) {
    const ssize_t got = read(fd, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return "";
    if (got == 0) break;
    EVP_DigestUpdate(md5.get(), block.data(), static_cast<size_t>(got));
  }
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  EVP_DigestFinal_ex(md5.get(), digest, &bytes);
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), bytes));
}

// Calls work(i) for each i < count by a few threads. Returns the first error, after which none is
// begun.
absl::Status InParallel(size_t count, const std::function<absl::Status(size_t)>& work) {
  absl::Mutex mutex;
  absl::Status first;
  std::atomic<size_t> next{0};
  const auto run = [&] {
    for (size_t i = next++; i < count; i = next++) {
      const absl::Status status = work(i);
      const absl::MutexLock lock(&mutex);
      if (first.ok()) first = status;
      if (!first.ok()) return;
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < std::min<size_t>(count, kConnections); ++i) threads.emplace_back(run);
  run();
  for (std::thread& thread : threads) thread.join();
  return first;
}

}  // namespace

FileMirror::FileMirror(std::shared_ptr<const ObjectStore> objects, std::string state_dir,
                       const Clock* clock, std::function<void()> also)
    : objects_(std::move(objects)),
      state_dir_(std::move(state_dir)),
      clock_(clock),
      also_(std::move(also)) {}

FileMirror::~FileMirror() { EndThreads(); }

std::string FileMirror::PathOf(const std::string& key) const {
  return absl::StrCat(state_dir_, "/", absl::StripSuffix(key, IsLinkKey(key) ? kLinkSuffix : ""));
}

bool FileMirror::Look(const std::string& key, Stamp* stamp) const {
  const std::string path = PathOf(key);
  struct stat about = {};
  if (lstat(path.c_str(), &about) != 0) return false;
  *stamp = Stamp();
  if (S_ISLNK(about.st_mode)) {
    std::error_code error;
    stamp->link = fs::read_symlink(path, error).string();
    return !error;
  }
  stamp->bytes = about.st_size;
  stamp->mtime_ns = about.st_mtim.tv_sec * int64_t{1000000000} + about.st_mtim.tv_nsec;
  stamp->inode = about.st_ino;
  return S_ISREG(about.st_mode);
}

bool FileMirror::IsKnown(const std::string& key, const Stamp& stamp) const {
  const absl::MutexLock lock(&mutex_);
  const auto found = known_.find(key);
  return found != known_.end() && found->second == stamp;
}

void FileMirror::Know(const std::string& key, const Stamp& stamp) {
  const absl::MutexLock lock(&mutex_);
  known_[key] = stamp;
}

// ---- getting --------------------------------------------------------------------

absl::Status FileMirror::GetLink(const std::string& key, bool own) {
  auto target = objects_->Read(key);
  if (absl::IsNotFound(target.status())) return absl::OkStatus();
  RETURN_IF_ERROR(target.status());
  if (!IsPredictionName(*target)) return absl::OkStatus();
  Stamp stamp;
  const bool here = Look(key, &stamp);
  if (own && here && stamp.link != *target) return absl::OkStatus();
  if (!here || stamp.link != *target) {
    const std::string path = PathOf(key);
    const std::string temporary = absl::StrCat(path, kTemporaryMark, "got");
    RETURN_IF_ERROR(MakeDirs(path.substr(0, path.rfind('/'))));
    unlink(temporary.c_str());
    if (symlink(target->c_str(), temporary.c_str()) != 0) return ErrnoStatus(errno, temporary);
    RETURN_IF_ERROR(RenameDurably(temporary, path));
  }
  stamp = Stamp();
  stamp.link = *target;
  Know(key, stamp);
  return absl::OkStatus();
}

bool FileMirror::IsSame(const ObjectInfo& object, const Stamp& here, bool own) const {
  if (here.bytes != object.bytes) return false;
  // What came in parts has a name that nothing else has. To read all large files at each start
  // would take long.
  if (object.md5.empty() || (own && here.bytes > kLargeBytes)) return true;
  return Md5OfFile(PathOf(object.key)) == object.md5;
}

absl::Status FileMirror::GetOne(const ObjectInfo& object, bool own) {
  const std::string& key = object.key;
  if (stop_) return absl::CancelledError("traind ends");
  if (IsLinkKey(key)) return GetLink(key, own);
  Stamp stamp;
  const bool here = Look(key, &stamp);
  if (here && IsKnown(key, stamp)) return absl::OkStatus();
  if (here && IsSame(object, stamp, own)) {
    Know(key, stamp);
    return absl::OkStatus();
  }
  if (here && own) return absl::OkStatus();  // it is newer, and will be given
  const std::string path = PathOf(key);
  RETURN_IF_ERROR(MakeDirs(path.substr(0, path.rfind('/'))));
  const std::string temporary = absl::StrCat(path, kTemporaryMark, "got");
  const int fd = open(temporary.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot create ", temporary));
  absl::Cleanup remove = [&] {
    close(fd);
    unlink(temporary.c_str());
  };
  const auto mtime = objects_->ReadTo(key, fd, stop_);
  if (absl::IsNotFound(mtime.status())) return absl::OkStatus();  // removed meanwhile
  RETURN_IF_ERROR(mtime.status());
  if (*mtime > absl::InfinitePast()) {
    const timespec at = absl::ToTimespec(*mtime);
    const timespec times[2] = {at, at};
    (void)futimens(fd, times);
  }
  if (fsync(fd) != 0) return ErrnoStatus(errno, absl::StrCat("cannot sync ", temporary));
  close(fd);
  std::move(remove).Cancel();
  RETURN_IF_ERROR(RenameDurably(temporary, path));
  if (Look(key, &stamp)) Know(key, stamp);
  return absl::OkStatus();
}

absl::Status FileMirror::Get(bool own) {
  const absl::MutexLock turn(&turn_);
  std::vector<ObjectInfo> files, links;
  std::set<std::string> there;
  for (const std::string& root : Roots()) {
    ASSIGN_OR_RETURN(const std::vector<ObjectInfo> listed, objects_->List(absl::StrCat(root, "/")));
    for (const ObjectInfo& object : listed) {
      if (!IsOurs(object.key)) continue;
      there.insert(object.key);
      (IsLinkKey(object.key) ? links : files).push_back(object);
    }
  }
  const auto get = [&](const std::vector<ObjectInfo>& objects) {
    return InParallel(objects.size(), [&](size_t i) { return GetOne(objects[i], own); });
  };
  RETURN_IF_ERROR(get(files));
  RETURN_IF_ERROR(get(links));
  Stamps gone;
  {
    const absl::MutexLock lock(&mutex_);
    for (auto it = known_.begin(); it != known_.end();) {
      const bool stays = there.count(it->first) > 0;
      if (!stays) gone.insert(*it);
      it = stays ? std::next(it) : known_.erase(it);
    }
  }
  for (const auto& [key, stamp] : gone) {
    Stamp now;
    if (Look(key, &now) && now == stamp) unlink(PathOf(key).c_str());
  }
  return absl::OkStatus();
}

// ---- giving ---------------------------------------------------------------------

FileMirror::Stamps FileMirror::Walk(const std::vector<std::string>& roots, Stamps* all) const {
  Stamps here;
  const absl::Time now = clock_->WallNow();
  for (const std::string& root : roots) {
    std::error_code error;
    const std::string folder = absl::StrCat(state_dir_, "/", root);
    for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
         it.increment(error)) {
      std::string key = it->path().lexically_relative(state_dir_).string();
      if (Stays(it->path().filename().string())) {
        std::error_code none;
        if (it->is_directory(none)) it.disable_recursion_pending();
        continue;
      }
      std::error_code none;
      if (it->is_symlink(none)) {
        if (!IsCurrentLink(key)) continue;
        key += kLinkSuffix;
      }
      Stamp stamp;
      if (!Look(key, &stamp)) continue;
      (*all)[key] = stamp;
      const bool quiet =
          !IsWrittenSlowly(key) || now - absl::FromUnixNanos(stamp.mtime_ns) >= kQuiet;
      if (quiet) here[key] = stamp;
    }
  }
  return here;
}

absl::Status FileMirror::GiveOne(const std::string& key, bool waited_for) {
  const std::string path = PathOf(key);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0 && errno == ENOENT) return absl::OkStatus();
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  const absl::Cleanup closer = [fd] { close(fd); };
  Stamp before, after;
  if (!Look(key, &before) || IsKnown(key, before)) return absl::OkStatus();
  RETURN_IF_ERROR(
      objects_->WriteFile(key, {fd, absl::FromUnixNanos(before.mtime_ns), waited_for}, stop_));
  // One that changed meanwhile goes again.
  if (Look(key, &after) && after == before) Know(key, before);
  return absl::OkStatus();
}

// A link goes when all that it leads to is there.
absl::Status FileMirror::GiveLinks(const Stamps& here) {
  for (const auto& [key, stamp] : here) {
    if (stamp.link.empty() || IsKnown(key, stamp)) continue;
    const std::string folder = absl::StrCat(key.substr(0, key.rfind('/') + 1), stamp.link, "/");
    bool whole = true;
    for (auto it = here.lower_bound(folder);
         it != here.end() && absl::StartsWith(it->first, folder); ++it) {
      whole = whole && IsKnown(it->first, it->second);
    }
    if (!whole) continue;
    RETURN_IF_ERROR(objects_->Write(key, stamp.link));
    Know(key, stamp);
  }
  return absl::OkStatus();
}

absl::Status FileMirror::RemoveGone(const Stamps& here) {
  std::vector<std::string> gone;
  {
    const absl::MutexLock lock(&mutex_);
    for (const auto& [key, stamp] : known_) {
      if (here.count(key) == 0) gone.push_back(key);
    }
  }
  return InParallel(gone.size(), [&](size_t i) -> absl::Status {
    Stamp stamp;
    if (Look(gone[i], &stamp)) return absl::OkStatus();
    // Where the folder itself cannot be seen, nothing is known to be gone.
    if (access(absl::StrCat(state_dir_, "/", gone[i].substr(0, gone[i].find('/'))).c_str(), X_OK) !=
        0) {
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(objects_->Remove(gone[i]));
    const absl::MutexLock lock(&mutex_);
    known_.erase(gone[i]);
    return absl::OkStatus();
  });
}

void FileMirror::GiveJobs(const std::vector<std::string>& jobs) {
  {
    const absl::MutexLock lock(&mutex_);
    if (clock_->MonotonicNow() < away_until_) return;
  }
  std::vector<std::string> folders = {CacheDir()};  // of what their data became
  for (const std::string& job : jobs) folders.push_back(JobDir(job));
  Stamps all;
  const Stamps here = Walk(folders, &all);
  std::vector<std::string> small;
  int64_t bytes = 0;
  for (const auto& [key, stamp] : here) {
    if (!stamp.link.empty() || stamp.bytes > kLargeBytes || IsKnown(key, stamp)) continue;
    bytes += stamp.bytes;
    if (bytes > kMostAtOnce) break;
    small.push_back(key);
  }
  absl::Status given =
      InParallel(small.size(), [&](size_t i) { return GiveOne(small[i], /*waited_for=*/true); });
  if (given.ok()) given = GiveLinks(here);
  if (given.ok()) return;
  TRAIND_LOG(WARNING) << "the bucket gets files later than their change: " << given;
  const absl::MutexLock lock(&mutex_);
  away_until_ = clock_->MonotonicNow() + kAway;
}

absl::Status FileMirror::Give() {
  const absl::MutexLock turn(&turn_);
  Stamps all;
  const Stamps here = Walk(Roots(), &all);
  std::vector<std::string> small;
  {
    const absl::MutexLock lock(&mutex_);
    large_.clear();
    for (const auto& [key, stamp] : here) {
      const auto found = known_.find(key);
      if (!stamp.link.empty() || (found != known_.end() && found->second == stamp)) continue;
      if (stamp.bytes <= kLargeBytes) {
        small.push_back(key);
      } else {
        large_.push_back(key);
      }
    }
  }
  changed_.NotifyAll();
  RETURN_IF_ERROR(InParallel(small.size(), [&](size_t i) { return GiveOne(small[i]); }));
  RETURN_IF_ERROR(GiveLinks(here));
  {
    const absl::MutexLock lock(&mutex_);
    away_until_ = absl::ZeroDuration();
  }
  return RemoveGone(all);
}

// ---- threads --------------------------------------------------------------------

void FileMirror::Run() {
  bool failed = false;
  while (true) {
    Way way = Way::kNone;
    {
      const absl::MutexLock lock(&mutex_);
      way = way_;
    }
    if (stop_ || way == Way::kNone) return;
    const absl::Duration begun = clock_->MonotonicNow();
    const absl::Status done = way == Way::kGet ? Get(false) : Give();
    if (way == Way::kGive && !stop_) also_();
    if (stop_) return;
    if (!done.ok() && !failed) TRAIND_LOG(WARNING) << "files and the bucket differ: " << done;
    if (done.ok() && failed) TRAIND_LOG(INFO) << "the bucket has all files again";
    failed = !done.ok();
    absl::Duration pause = way == Way::kGet ? kGetEvery : kGiveEvery;
    pause = std::max(pause, kWalkShare * (clock_->MonotonicNow() - begun));
    if (failed) pause = kAfterAnError;
    const absl::MutexLock lock(&mutex_);
    changed_.Await(mutex_, std::min(pause, absl::Minutes(1)), [&] {
      mutex_.AssertReaderHeld();
      return stop_ || way_ != way;
    });
  }
}

void FileMirror::RunLarge() {
  while (!stop_) {
    std::string key;
    {
      const absl::MutexLock lock(&mutex_);
      changed_.Await(mutex_, absl::Minutes(1), [&] {
        mutex_.AssertReaderHeld();
        return stop_ || !large_.empty();
      });
      if (stop_) return;
      if (large_.empty()) continue;
      key = large_.front();
      large_.pop_front();
    }
    const absl::Status given = GiveOne(key);
    if (!given.ok() && !stop_) {
      TRAIND_LOG(WARNING) << key << " is not in the bucket yet: " << given;
      const absl::MutexLock lock(&mutex_);
      changed_.Await(mutex_, kAfterAnError, [&] { return stop_.load(); });
    }
  }
}

void FileMirror::Begin(Way way) {
  {
    const absl::MutexLock lock(&mutex_);
    way_ = way;
  }
  stop_ = false;
  threads_.emplace_back([this] { Run(); });
  if (way == Way::kGive) threads_.emplace_back([this] { RunLarge(); });
}

void FileMirror::EndThreads() {
  {
    const absl::MutexLock lock(&mutex_);
    way_ = Way::kNone;
    stop_ = true;
  }
  changed_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  stop_ = false;
}

void FileMirror::Follow() { Begin(Way::kGet); }

absl::Status FileMirror::TakeOver(bool own) {
  EndThreads();
  RETURN_IF_ERROR(Get(own));
  Begin(Way::kGive);
  return absl::OkStatus();
}

absl::Status FileMirror::Finish() {
  EndThreads();
  RETURN_IF_ERROR(Give());
  std::deque<std::string> large;
  {
    const absl::MutexLock lock(&mutex_);
    large.swap(large_);
  }
  for (const std::string& key : large) RETURN_IF_ERROR(GiveOne(key));
  return Give();  // the links to them
}

}  // namespace traind
