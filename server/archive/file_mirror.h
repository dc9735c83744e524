// Copies of the files of Jobs in a bucket, for a traind that goes on elsewhere. (With a folder as
// archive nothing is copied: the state folder has links to it.)
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/base/timed_wait.h"
#include "server/objects/object_store.h"

namespace traind {

// The files below jobs/, cache/ and uploads/ have keys like their paths. The link to a standing
// Prediction is an object with its target; it follows the files that it leads to. Temporary and
// lock files stay; a log, or a file of a user's program, goes once it has not changed for a while.
//
// It follows the database by about a second, or by as long as the link takes; what a change of the
// database tells of comes before it (GiveJobs). Files of more than 8 MiB (checkpoints, caches) go
// by a way of their own, for which nobody waits.
//
// Threads: safe, but for the constructor and the destructor.
class FileMirror {
 public:
  // also: called by its thread after each turn of giving; it gives what goes beside these files.
  // Ownership: the clock outlives it.
  FileMirror(
      std::shared_ptr<const ObjectStore> objects, std::string state_dir, const Clock* clock,
      std::function<void()> also = [] {});
  ~FileMirror();  // as if the process was killed
  FileMirror(const FileMirror&) = delete;
  FileMirror& operator=(const FileMirror&) = delete;

  // Gets what the store has and the state folder lacks, in the background and again and again, and
  // removes what it has got and the store no longer has.
  void Follow() ABSL_LOCKS_EXCLUDED(mutex_);
  // Gets what is left, and gives from then on. own: the state folder is that of the traind that
  // gave the store its files, so what is here is as new as there. Errors: those of the store and
  // the system; what came stays.
  absl::Status TakeOver(bool own) ABSL_LOCKS_EXCLUDED(mutex_);
  // Gives what is left, and ends. Errors: as TakeOver.
  absl::Status Finish() ABSL_LOCKS_EXCLUDED(mutex_);

  // Gives what these Jobs have new, the cached data included, by the caller's thread: files of at
  // most 8 MiB, in all about 16 MiB. What cannot be given is left to the next turn. A store that
  // says nothing for 3 s is given up, and nothing more is given so for 10 s, or until a turn has
  // given all, because the caller keeps deadlines.
  void GiveJobs(const std::vector<std::string>& jobs) ABSL_LOCKS_EXCLUDED(mutex_);

  // A single turn, by the caller's thread.
  absl::Status Get(bool own) ABSL_LOCKS_EXCLUDED(turn_, mutex_);
  absl::Status Give() ABSL_LOCKS_EXCLUDED(turn_, mutex_);

 private:
  enum class Way { kNone, kGet, kGive };
  // A file as it was when it was last the same on both sides.
  struct Stamp {
    int64_t bytes = 0, mtime_ns = 0;
    uint64_t inode = 0;
    std::string link;  // of a link: its target

    bool operator==(const Stamp& other) const {
      return bytes == other.bytes && mtime_ns == other.mtime_ns && inode == other.inode &&
             link == other.link;
    }
  };
  using Stamps = std::map<std::string, Stamp>;  // by key

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  void RunLarge() ABSL_LOCKS_EXCLUDED(mutex_);
  void Begin(Way way) ABSL_LOCKS_EXCLUDED(mutex_);
  void EndThreads() ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Status GetOne(const ObjectInfo& object, bool own) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status GetLink(const std::string& key, bool own) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether the file that is here is surely that of the store.
  bool IsSame(const ObjectInfo& object, const Stamp& here, bool own) const;
  absl::Status GiveOne(const std::string& key, bool waited_for = false) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status GiveLinks(const Stamps& here) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status RemoveGone(const Stamps& here) ABSL_LOCKS_EXCLUDED(mutex_);
  // What lies below these folders of the state folder and may travel now. `all` has also what
  // changed just now.
  Stamps Walk(const std::vector<std::string>& roots, Stamps* all) const;
  bool Look(const std::string& key, Stamp* stamp) const;
  bool IsKnown(const std::string& key, const Stamp& stamp) const ABSL_LOCKS_EXCLUDED(mutex_);
  void Know(const std::string& key, const Stamp& stamp) ABSL_LOCKS_EXCLUDED(mutex_);
  std::string PathOf(const std::string& key) const;

  const std::shared_ptr<const ObjectStore> objects_;
  const std::string state_dir_;
  const Clock* const clock_;
  const std::function<void()> also_;

  absl::Mutex turn_;  // held during a turn
  mutable absl::Mutex mutex_;
  TimedCondVar changed_;
  Way way_ ABSL_GUARDED_BY(mutex_) = Way::kNone;
  Stamps known_ ABSL_GUARDED_BY(mutex_);
  absl::Duration away_until_
      ABSL_GUARDED_BY(mutex_);  // of the clock's MonotonicNow(): not waited for
  std::deque<std::string> large_ ABSL_GUARDED_BY(mutex_);  // keys, the next one first
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace traind
