#include "server/loop/views.h"

#include <algorithm>

namespace traind {

void JobViews::Update(const std::vector<std::shared_ptr<const Job>>& jobs) {
  absl::MutexLock lock(&mutex_);
  for (const auto& job : jobs) {
    View& view = views_[job->id];
    const bool ended = IsTerminal(job->state) && !(view.job && IsTerminal(view.job->state));
    view = {job, ++changes_};
    if (ended) terminal_.push_back(job->id);
  }
  if (terminal_.size() > kKeepTerminal) {
    const size_t drop = terminal_.size() - kKeepTerminal;
    for (size_t i = 0; i < drop; ++i) views_.erase(terminal_[i]);
    terminal_.erase(terminal_.begin(), terminal_.begin() + drop);
  }
  if (!jobs.empty()) replaced_.NotifyAll();
}

void JobViews::Remove(const std::string& id) {
  absl::MutexLock lock(&mutex_);
  views_.erase(id);
  terminal_.erase(std::remove(terminal_.begin(), terminal_.end(), id), terminal_.end());
}

JobViews::View JobViews::Find(const std::string& id) const {
  absl::MutexLock lock(&mutex_);
  const auto it = views_.find(id);
  return it == views_.end() ? View{} : it->second;
}

std::vector<std::shared_ptr<const Job>> JobViews::Active() const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::shared_ptr<const Job>> active;
  active.reserve(views_.size());
  for (const auto& [id, view] : views_) {
    if (!IsTerminal(view.job->state)) active.push_back(view.job);
  }
  return active;
}

std::vector<std::string> JobViews::Ended(uint64_t since) const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> ended;
  for (const std::string& id : terminal_) {
    const auto it = views_.find(id);
    if (it != views_.end() && it->second.change > since) ended.push_back(id);
  }
  return ended;
}

JobViews::View JobViews::Wait(const std::string& id, uint64_t since, absl::Duration timeout) const {
  absl::MutexLock lock(&mutex_);
  const auto changed = [&] {
    mutex_.AssertReaderHeld();
    if (closed_) return true;
    const auto it = views_.find(id);
    return it == views_.end() || it->second.change > since;
  };
  replaced_.Await(mutex_, timeout, changed);
  const auto it = views_.find(id);
  return it == views_.end() ? View{} : it->second;
}

uint64_t JobViews::WaitAny(uint64_t since, absl::Duration timeout) const {
  absl::MutexLock lock(&mutex_);
  const auto changed = [&] {
    mutex_.AssertReaderHeld();
    return closed_ || changes_ > since;
  };
  replaced_.Await(mutex_, timeout, changed);
  return changes_;
}

void JobViews::Close() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
  replaced_.NotifyAll();
}

bool JobViews::closed() const {
  absl::MutexLock lock(&mutex_);
  return closed_;
}

}  // namespace traind
