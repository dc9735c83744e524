#include "server/retention/collector.h"

#include <absl/container/flat_hash_set.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/synchronization/notification.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "common/base/job_layout.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "server/retention/job_needs.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

// A file that was used so recently may be used just now by a Job that is not listed yet.
constexpr absl::Duration kFresh = absl::Minutes(1);
constexpr absl::Duration kUploadIsForASubmit = absl::Hours(1);
// The share of the file system that stays free: caches go below it; on a large one kMostFree is
// enough.
constexpr double kFreeShare = 0.05;
constexpr int64_t kMostFree = int64_t{10} << 30;
// For so long it is remembered what a Job takes; people may delete files, too.
constexpr absl::Duration kRememberUses = absl::Hours(1);
constexpr int kMostPurges = 100'000;

absl::Status Stopped() { return absl::CancelledError("traind is stopping"); }

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  return names;
}

}  // namespace

Collector::Collector(CollectorOptions options, ControlLoop* loop, Store* store)
    : options_(std::move(options)), loop_(loop), store_(store) {}

Collector::~Collector() { Stop(); }

void Collector::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Collector::Stop() {
  {
    absl::MutexLock lock(&wake_);
    stopping_ = true;
    stopped_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

bool Collector::stopping() const {
  absl::MutexLock lock(&wake_);
  return stopping_;
}

void Collector::Run() {
  while (true) {
    const auto collected = Collect(/*dry_run=*/false);
    if (!collected.ok() && !absl::IsCancelled(collected.status())) {
      TRAIND_LOG(WARNING) << "not everything could be deleted: " << collected.status();
    }
    absl::MutexLock lock(&wake_);
    const auto stopping = [this] {
      wake_.AssertReaderHeld();
      return stopping_;
    };
    if (stopped_.Await(wake_, options_.every, stopping)) return;
  }
}

absl::Status Collector::Await(const std::function<void(ControlLoop::Answer)>& call) {
  struct Outcome {
    absl::Notification done;
    absl::Status status;
  };
  const auto outcome = std::make_shared<Outcome>();
  call([outcome](const Reply& reply) {
    outcome->status = reply.status;
    outcome->done.Notify();
  });
  outcome->done.WaitForNotification();
  return outcome->status;
}

// ---- deleting a Job -----------------------------------------------------------

absl::StatusOr<int64_t> Collector::Delete(const std::string& job) {
  absl::MutexLock lock(&mutex_);
  return DeleteLocked(job);
}

absl::StatusOr<int64_t> Collector::DeleteLocked(const std::string& id) {
  const auto job = store_->GetJob(id);
  if (absl::IsNotFound(job.status()) && store_->FindDeleted(id).ok()) {
    RETURN_IF_ERROR(FinishDeletion(id));
    return 0;
  }
  RETURN_IF_ERROR(job.status());
  std::vector<int64_t> attempts;
  for (const Attempt& attempt : job->attempts) attempts.push_back(attempt.id);
  const int64_t bytes = BytesOnDisk(absl::StrCat(options_.state_dir, "/", JobDir(id)));
  options_.before_step();
  RETURN_IF_ERROR(Await([&](ControlLoop::Answer answer) {
    loop_->Delete(id, std::move(attempts), std::move(answer));
  }));
  uses_.clear();  // files that it shared with others count for those now
  RETURN_IF_ERROR(FinishDeletion(id));
  TRAIND_LOG(INFO) << "deleted job " << id << ", " << bytes << " bytes";
  return bytes;
}

// REQUIRES: the store says that the Job is deleted.
absl::Status Collector::FinishDeletion(const std::string& job) {
  options_.before_step();
  RETURN_IF_ERROR(RemoveDurably(absl::StrCat(options_.state_dir, "/", JobDir(job))));
  for (int i = 0; i < kMostPurges; ++i) {
    ASSIGN_OR_RETURN(const std::vector<std::string> left, store_->ListDeleting(loop_->Now()));
    if (std::find(left.begin(), left.end(), job) == left.end()) break;
    options_.before_step();
    RETURN_IF_ERROR(
        Await([&](ControlLoop::Answer answer) { loop_->Purge(job, std::move(answer)); }));
  }
  options_.before_step();
  return absl::OkStatus();
}

absl::Status Collector::FinishDeletions() {
  ASSIGN_OR_RETURN(const std::vector<std::string> begun, store_->ListDeleting(loop_->Now()));
  for (const std::string& job : begun) {
    if (stopping()) return Stopped();
    RETURN_IF_ERROR(FinishDeletion(job));
  }
  return absl::OkStatus();
}

// A Worker that was cut off may have written into the folder of a Job that was deleted since.
absl::Status Collector::RemoveReturned() {
  for (const std::string& name : NamesIn(absl::StrCat(options_.state_dir, "/jobs"))) {
    if (uses_.count(name) > 0 || loop_->views().Find(name).job != nullptr) continue;
    if (!store_->FindDeleted(name).ok() || store_->GetJob(name).ok()) continue;
    RETURN_IF_ERROR(RemoveDurably(absl::StrCat(options_.state_dir, "/", JobDir(name))));
  }
  return absl::OkStatus();
}

// ---- what there is --------------------------------------------------------------

absl::Status Collector::AddKept(StateContent* content) {
  ASSIGN_OR_RETURN(std::vector<EndedJob> ended, store_->ListEnded());
  const absl::Time now = loop_->Now();
  if (now > uses_until_) {
    uses_.clear();
    uses_until_ = now + kRememberUses;
  }
  for (EndedJob& job : ended) {
    if (stopping()) return Stopped();
    // Its Ranks may still have written something.
    if (now - job.ended_at < kFresh) uses_.erase(job.id);
    auto known = uses_.find(job.id);
    if (known == uses_.end()) {
      const auto whole = store_->GetJob(job.id);
      if (absl::IsNotFound(whole.status())) continue;
      RETURN_IF_ERROR(whole.status());
      known = uses_.emplace(job.id, UseOfJob(options_.state_dir, *whole)).first;
    }
    JobKept& kept = content->kept.emplace_back();
    kept.id = std::move(job.id);
    kept.ended_at = job.ended_at;
    kept.pinned = job.pinned;
    kept.has_history = job.has_history;
    kept.cache_key = std::move(job.cache_key);
    kept.bytes = known->second.bytes;
    kept.interim_bytes = known->second.interim_bytes;
  }
  return absl::OkStatus();
}

absl::Status Collector::AddCache(StateContent* content) {
  for (const CacheFiles& files : ListCache(options_.state_dir)) {
    CacheEntry& entry = content->cache.emplace_back();
    entry.key = files.key;
    entry.last_used = files.modified;
    entry.bytes = files.bytes;
    if (!files.is_model_file) continue;
    ASSIGN_OR_RETURN(entry.in_a_spec, store_->IsInASpec(files.key));
  }
  const std::vector<CacheFiles> uploads = ListUploads(options_.state_dir);
  if (uploads.empty()) return absl::OkStatus();
  const auto active = loop_->views().Active();
  for (const CacheFiles& files : uploads) {
    CacheEntry& entry = content->cache.emplace_back();
    entry.key = files.key;
    entry.last_used = files.modified;
    entry.bytes = files.bytes;
    // A Submit that names it may be on its way, and one that was accepted reads it later.
    entry.in_a_spec = loop_->Now() - files.modified < kUploadIsForASubmit ||
                      std::any_of(active.begin(), active.end(), [&](const auto& job) {
                        return absl::StrContains(job->spec_json, absl::StrCat("/", files.key, "/"));
                      });
  }
  return absl::OkStatus();
}

void Collector::AddTheRest(StateContent* content) const {
  absl::flat_hash_set<std::string> kept;
  for (const JobKept& job : content->kept) kept.insert(job.id);
  for (const std::string& name : NamesIn(options_.state_dir)) {
    if (name == CacheDir() || name == "jobs" || name == kUploadsDir) continue;
    content->other_bytes += BytesOnDisk(absl::StrCat(options_.state_dir, "/", name));
  }
  for (const std::string& name : NamesIn(absl::StrCat(options_.state_dir, "/jobs"))) {
    if (kept.contains(name)) continue;
    content->other_bytes += BytesOnDisk(absl::StrCat(options_.state_dir, "/", JobDir(name)));
  }
}

absl::StatusOr<StateContent> Collector::ReadContent() {
  StateContent content;
  RETURN_IF_ERROR(AddKept(&content));
  RETURN_IF_ERROR(AddCache(&content));
  AddTheRest(&content);
  // Listed last: a Job that was submitted meanwhile needs what it needs.
  for (const auto& job : loop_->views().Active()) content.at_work.push_back(NeedsOf(*job));
  return content;
}

RetentionLimits Collector::LimitsOfDisk(int64_t* free_bytes) const {
  RetentionLimits limits = options_.limits;
  struct statvfs disk = {};
  *free_bytes = 0;
  // The Jobs may lie on another disk (--artifacts).
  if (statvfs(absl::StrCat(options_.state_dir, "/jobs").c_str(), &disk) != 0 &&
      statvfs(options_.state_dir.c_str(), &disk) != 0) {
    return limits;
  }
  const double size = static_cast<double>(disk.f_blocks) * static_cast<double>(disk.f_frsize);
  *free_bytes = static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize);
  if (limits.bytes == kNoLimit) limits.bytes = static_cast<int64_t>(size * options_.disk_share);
  limits.free_bytes = std::min(static_cast<int64_t>(size * kFreeShare), kMostFree);
  return limits;
}

// ---- collecting -----------------------------------------------------------------

absl::StatusOr<std::vector<GarbageItem>> Collector::Collect(bool dry_run) {
  absl::MutexLock lock(&mutex_);
  std::vector<GarbageItem> items;
  if (!dry_run) RETURN_IF_ERROR(FinishDeletions());
  AddUnplanned(&items);
  ASSIGN_OR_RETURN(StateContent content, ReadContent());
  if (!dry_run) RETURN_IF_ERROR(RemoveReturned());
  const RetentionLimits limits = LimitsOfDisk(&content.free_bytes);
  for (GarbageItem& item : PlanRetention(content, limits, loop_->Now())) {
    items.push_back(std::move(item));
  }
  if (dry_run) return items;
  absl::Status first_error;
  const auto refused = [&](const GarbageItem& item) {
    if (stopping()) {
      first_error.Update(Stopped());
      return true;
    }
    const absl::Status dropped = Drop(item);
    // A Job that is used since it was listed stays until the next time.
    if (absl::IsFailedPrecondition(dropped) || absl::IsUnavailable(dropped)) return true;
    first_error.Update(dropped);
    return !dropped.ok();
  };
  items.erase(std::remove_if(items.begin(), items.end(), refused), items.end());
  first_error.Update(ForgetHistories(items));
  RETURN_IF_ERROR(first_error);
  return items;
}

void Collector::AddUnplanned(std::vector<GarbageItem>* items) const {
  for (const TemporaryFile& file :
       ListAbandoned(options_.state_dir, options_.shared, loop_->Now())) {
    items->push_back({Garbage::kTemporary, file.path.substr(options_.state_dir.size() + 1),
                      file.bytes, "its writer is gone"});
  }
  const int64_t log = BytesOnDisk(absl::StrCat(options_.state_dir, "/", options_.log));
  if (options_.log.empty() || log <= options_.most_log_bytes) return;
  items->push_back({Garbage::kLog, options_.log, log - options_.most_log_bytes / 4,
                    "the log has grown; its end is kept"});
}

absl::Status Collector::Drop(const GarbageItem& item) {
  switch (item.what) {
    case Garbage::kLog:
      return RotateLog(absl::StrCat(options_.state_dir, "/", item.name),
                       options_.most_log_bytes / 4);
    case Garbage::kTemporary:
      return RemoveDurably(absl::StrCat(options_.state_dir, "/", item.name));
    case Garbage::kCache:
      return DropCache(item.name);
    case Garbage::kInterim:
      return DropInterim(item.name);
    case Garbage::kJob:
      return DeleteLocked(item.name).status();
    case Garbage::kHistory:  // of all Jobs at once, by ForgetHistories
      break;
  }
  return absl::OkStatus();
}

absl::Status Collector::DropCache(const std::string& key) {
  const bool upload = absl::StartsWith(key, absl::StrCat(kUploadsDir, "/"));
  for (const CacheFiles& files :
       upload ? ListUploads(options_.state_dir) : ListCache(options_.state_dir)) {
    if (files.key != key) continue;
    if (loop_->Now() - files.modified < kFresh) {
      return absl::FailedPreconditionError(absl::StrCat("the cache ", key, " is in use again"));
    }
    // The table is first: where it is missing, the data are read again.
    for (const std::string& file : files.files) RETURN_IF_ERROR(RemoveDurably(file));
  }
  return absl::OkStatus();
}

absl::Status Collector::DropInterim(const std::string& job) {
  FolderUse& use = uses_[job];
  for (const std::string& file : use.interim) RETURN_IF_ERROR(RemoveDurably(file));
  use.bytes -= use.interim_bytes;
  use.interim_bytes = 0;
  use.interim.clear();
  return absl::OkStatus();
}

absl::Status Collector::ForgetHistories(const std::vector<GarbageItem>& items) {
  absl::flat_hash_set<std::string> asked;
  for (const GarbageItem& item : items) {
    if (item.what == Garbage::kHistory) asked.insert(item.name);
  }
  for (int i = 0; i < kMostPurges && !asked.empty(); ++i) {
    for (const std::string& job : asked) {
      if (stopping()) return Stopped();
      RETURN_IF_ERROR(
          Await([&](ControlLoop::Answer answer) { loop_->ForgetHistory(job, std::move(answer)); }));
    }
    ASSIGN_OR_RETURN(const std::vector<EndedJob> ended, store_->ListEnded());
    absl::flat_hash_set<std::string> left;
    for (const EndedJob& job : ended) {
      if (job.has_history && asked.contains(job.id)) left.insert(job.id);
    }
    asked = std::move(left);
  }
  return absl::OkStatus();
}

}  // namespace traind
