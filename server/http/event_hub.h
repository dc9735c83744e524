// Tells those who follow a Job of its changes: each change is rendered once, however many follow.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/container/flat_hash_map.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/timed_wait.h"
#include "server/http/json_api.h"
#include "server/http/message.h"
#include "server/loop/views.h"

namespace traind {

// One thread looks at the views of all Jobs that somebody follows.
// Threads: safe; Start and Stop from one. Ownership: `views` outlives it.
class EventHub {
 public:
  using Render = std::function<absl::StatusOr<RenderedJob>(const std::string& id)>;

  EventHub(const JobViews* views, std::string boot, Render render);
  ~EventHub();

  // Sends the Job's changes to the stream, at first the Job as it is unless the client has that:
  // last_event_id is the id of the last event that it got. After the Job's end the stream ends.
  // admitted: asked every few seconds by the hub's thread; the stream ends once it says no. Empty:
  // it never does. REQUIRES: id is a Job's own id.
  void Follow(const std::string& id, absl::string_view last_event_id,
              std::shared_ptr<HttpStream> stream, std::function<bool()> admitted = nullptr)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // How many streams are open.
  int streams() const ABSL_LOCKS_EXCLUDED(mutex_);

  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // The id of an event about a Job in this state. Ids of live Jobs are of this process alone; an
  // ended Job's is that of its version.
  std::string EventId(const JobViews::View& view) const;
  static std::string EndedId(int64_t version);
  // An event as it is sent.
  static std::string EventText(absl::string_view id, absl::string_view json);

 private:
  struct Follower {
    std::shared_ptr<HttpStream> stream;
    std::function<bool()> admitted;
  };
  struct Topic {
    uint64_t change = 0;  // of the view that `event` tells
    std::string event_id;
    std::shared_ptr<const std::string> event;
    std::vector<Follower> followers;
  };
  struct News {
    JobViews::View view;
    std::string event_id;
    std::shared_ptr<const std::string> event;  // null: the Job is gone
    bool over = false;
  };

  void Run();
  News Look(const std::string& id, const JobViews::View& view) const;
  void Publish(const std::string& id, const News& news) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendHeartbeats() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the streams of those who may follow no more.
  void CheckFollowers() ABSL_LOCKS_EXCLUDED(mutex_);

  const JobViews* const views_;
  const std::string boot_;
  const Render render_;
  mutable absl::Mutex mutex_;
  TimedCondVar wanted_;  // after a change of topics_ or stopping_
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<std::string, Topic> topics_ ABSL_GUARDED_BY(mutex_);  // by Job
  absl::Duration heartbeat_at_ ABSL_GUARDED_BY(mutex_);                     // monotonic
  std::thread thread_;
};

}  // namespace traind
