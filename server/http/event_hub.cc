#include "server/http/event_hub.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "common/base/clock.h"
#include "server/access/gate.h"

namespace traind {
namespace {

constexpr absl::Duration kBetweenEvents = absl::Milliseconds(200);
constexpr absl::Duration kLookAround = absl::Milliseconds(500);
constexpr absl::Duration kHeartbeat = absl::Seconds(15);
constexpr char kPreamble[] = "retry: 2000\n\n";

}  // namespace

EventHub::EventHub(const JobViews* views, std::string boot, Render render)
    : views_(views), boot_(std::move(boot)), render_(std::move(render)) {
  heartbeat_at_ = SystemClock().MonotonicNow() + kHeartbeat;
  thread_ = std::thread([this] { Run(); });
}

EventHub::~EventHub() { Stop(); }

std::string EventHub::EventId(const JobViews::View& view) const {
  if (IsTerminal(view.job->state)) return EndedId(view.job->version);
  return absl::StrCat(boot_, "-", view.change);
}

std::string EventHub::EndedId(int64_t version) { return absl::StrCat("v", version); }

std::string EventHub::EventText(absl::string_view id, absl::string_view json) {
  return absl::StrCat("event: job\nid: ", id, "\ndata: ", json, "\n\n");
}

EventHub::News EventHub::Look(const std::string& id, const JobViews::View& view) const {
  News news;
  news.view = view;
  const auto job = render_(id);
  if (!job.ok()) {
    news.over = true;
    return news;
  }
  news.over = job->over;
  news.event_id = job->over || view.job == nullptr ? EndedId(job->version) : EventId(view);
  news.event = std::make_shared<const std::string>(EventText(news.event_id, job->json));
  return news;
}

void EventHub::Follow(const std::string& id, absl::string_view last_event_id,
                      std::shared_ptr<HttpStream> stream, std::function<bool()> admitted) {
  static const auto* const preamble =
      new std::shared_ptr<const std::string>(new std::string(kPreamble));
  stream->Push(*preamble);
  {
    absl::MutexLock lock(&mutex_);
    const auto it = topics_.find(id);
    if (it != topics_.end()) {
      if (it->second.event_id != last_event_id) stream->Push(it->second.event);
      it->second.followers.push_back({std::move(stream), std::move(admitted)});
      return;
    }
  }
  const News news = Look(id, views_->Find(id));
  absl::MutexLock lock(&mutex_);
  if (news.event != nullptr && news.event_id != last_event_id) stream->Push(news.event);
  if (news.over || stopping_) return stream->End();
  Topic& topic = topics_[id];
  if (topic.event == nullptr) {
    topic.change = news.view.change;
    topic.event_id = news.event_id;
    topic.event = news.event;
  }
  topic.followers.push_back({std::move(stream), std::move(admitted)});
  wanted_.NotifyAll();
}

int EventHub::streams() const {
  absl::MutexLock lock(&mutex_);
  size_t count = 0;
  // Those of clients that have gone stay in the list until something is sent.
  for (const auto& [id, topic] : topics_) {
    for (const Follower& follower : topic.followers) count += follower.stream->closed() ? 0 : 1;
  }
  return static_cast<int>(count);
}

void EventHub::Publish(const std::string& id, const News& news) {
  const auto it = topics_.find(id);
  if (it == topics_.end()) return;
  Topic& topic = it->second;
  topic.change = news.view.change;
  topic.event_id = news.event_id;
  topic.event = news.event;
  for (const Follower& follower : topic.followers) {
    if (news.event != nullptr) follower.stream->Push(news.event);
    if (news.over) follower.stream->End();
  }
  if (news.over) topics_.erase(it);
}

void EventHub::SendHeartbeats() {
  static const auto* const heartbeat =
      new std::shared_ptr<const std::string>(new std::string(": still here\n\n"));
  for (auto it = topics_.begin(); it != topics_.end();) {
    std::vector<Follower>& followers = it->second.followers;
    followers.erase(std::remove_if(followers.begin(), followers.end(),
                                   [](const Follower& one) { return one.stream->closed(); }),
                    followers.end());
    for (const Follower& follower : followers) follower.stream->Push(*heartbeat);
    if (followers.empty()) {
      topics_.erase(it++);
    } else {
      ++it;
    }
  }
}

void EventHub::CheckFollowers() {
  std::vector<Follower> checked;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [id, topic] : topics_) {
      for (const Follower& follower : topic.followers) {
        if (follower.admitted != nullptr) checked.push_back(follower);
      }
    }
  }
  // Without the lock: to look at tokens may wait for the disk.
  for (const Follower& follower : checked) {
    if (!follower.stream->closed() && !follower.admitted()) follower.stream->End();
  }
}

void EventHub::Run() {
  uint64_t seen = 0;
  absl::Duration check_at = SystemClock().MonotonicNow() + kRecheckStreams;
  while (true) {
    std::vector<std::pair<std::string, uint64_t>> followed;
    {
      absl::MutexLock lock(&mutex_);
      const auto wanted = [this] {
        mutex_.AssertReaderHeld();
        return stopping_ || !topics_.empty();
      };
      while (!wanted_.Await(mutex_, absl::Hours(1), wanted)) continue;
      if (stopping_) return;
      if (SystemClock().MonotonicNow() >= heartbeat_at_) {
        SendHeartbeats();
        heartbeat_at_ = SystemClock().MonotonicNow() + kHeartbeat;
      }
      for (const auto& [id, topic] : topics_) followed.emplace_back(id, topic.change);
    }
    if (SystemClock().MonotonicNow() >= check_at) {
      CheckFollowers();
      check_at = SystemClock().MonotonicNow() + kRecheckStreams;
    }
    seen = views_->WaitAny(seen, kLookAround);
    for (const auto& [id, change] : followed) {
      const JobViews::View view = views_->Find(id);
      if (view.job != nullptr && view.change == change) continue;
      const News news = Look(id, view);
      absl::MutexLock lock(&mutex_);
      Publish(id, news);
    }
    absl::MutexLock lock(&mutex_);
    const auto stopping = [this] {
      mutex_.AssertReaderHeld();
      return stopping_;
    };
    wanted_.Await(mutex_, kBetweenEvents, stopping);
  }
}

void EventHub::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    for (auto& [id, topic] : topics_) {
      for (const Follower& follower : topic.followers) follower.stream->End();
    }
    topics_.clear();
    wanted_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace traind
