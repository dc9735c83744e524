#include "worker/daemon/publish_schedule.h"

#include <algorithm>
#include <utility>

namespace traind::worker {
namespace {

constexpr absl::Duration kRetry = absl::Seconds(2);
// A living traind takes a fact within this.
constexpr absl::Duration kAckTime = absl::Milliseconds(100);
// What a living traind has taken it has published after this.
constexpr absl::Duration kPublishTime = absl::Seconds(5);

}  // namespace

void PublishSchedule::Started(const TaskStart& task, absl::Duration now) {
  // Bounded by time: whom nobody works for any more, and whose deadline is over.
  for (auto it = publish_schedule_.begin(); it != publish_schedule_.end();) {
    const Home& home = it->second;
    const bool over = home.deadline_at == absl::InfiniteDuration() || home.deadline_at < now;
    if (over && !home.running && now - home.news_at > options_.keep) {
      publish_schedule_.erase(it++);
    } else {
      ++it;
    }
  }
  Home& home = publish_schedule_[task.job];
  home.news_at = now;
  home.deadline_at = task.deadline_at;
  home.request.job = task.job;
  if (!task.table.empty()) home.request.table = task.table;
  if (!task.metric.empty()) home.request.metric = task.metric;
  if (task.spec_folds > 0) home.request.spec_folds = task.spec_folds;
  home.request.plan_cut = task.plan_cut;
}

PublishSchedule::Home* PublishSchedule::Find(const std::string& job) {
  const auto it = publish_schedule_.find(job);
  return it == publish_schedule_.end() ? nullptr : &it->second;
}

void PublishSchedule::Replanned(const std::string& job, bool plan_cut,
                                std::optional<absl::Duration> deadline_at) {
  Home* home = Find(job);
  if (home == nullptr) return;
  home->request.plan_cut = plan_cut;
  if (!deadline_at || *deadline_at == home->deadline_at) return;
  home->deadline_at = *deadline_at;
  home->last_call = false;
}

void PublishSchedule::TableRead(const std::string& job, const rank_protocol::TableReady& table,
                                absl::Duration now) {
  Home* home = Find(job);
  if (home == nullptr) return;
  home->request.table = table.table;
  home->news_at = now;
}

void PublishSchedule::FloorSaved(const std::string& job, absl::Duration now) {
  Home* home = Find(job);
  if (home == nullptr) return;
  home->fresh = true;
  home->news_at = now;
}

void PublishSchedule::FoldSaved(const std::string& job, const rank_protocol::FoldSaved& fold,
                                absl::Duration now) {
  Home* home = Find(job);
  if (home == nullptr) return;
  if (fold.seed > 0 && !fold.last) return;  // an extra seed answers once it is trained
  Member& member = home->members[{fold.fold, fold.seed}];
  if (member.complete && !fold.complete) return;  // a retry's first steps hide no whole fold
  member = {fold.fold, fold.attempt,    fold.complete, fold.score,      fold.epochs_done,
            fold.oof,  fold.oof_sha256, fold.test,     fold.test_sha256};
  member.best_epoch = fold.best_epoch;
  member.step = fold.step;
  member.seed = fold.seed;
  home->fresh = true;
  home->last_call = false;
  home->news_at = now;
}

void PublishSchedule::Connected() { lost_at_.reset(); }

void PublishSchedule::Disconnected(absl::Duration now) {
  if (!lost_at_) lost_at_ = now;
}

absl::Duration PublishSchedule::DueAt(const Home& home) const {
  if (home.running || home.request.table.empty() || home.request.metric.empty()) {
    return absl::InfiniteDuration();
  }
  if (!home.fresh) return absl::InfiniteDuration();
  const absl::Duration last_call = home.deadline_at - options_.last_call;
  absl::Duration due = absl::InfiniteDuration();
  // There is no time for patience before a deadline.
  if (lost_at_) {
    due = std::max({home.news_at, *lost_at_, std::min(*lost_at_ + options_.patience, last_call)});
  }
  if (!home.last_call) due = std::min(due, std::max(last_call, home.news_at + kAckTime));
  return std::max(due, home.not_before);
}

std::vector<PublishRequest> PublishSchedule::Due(absl::Duration now, bool unacked) {
  std::vector<PublishRequest> due;
  for (auto& [job, home] : publish_schedule_) {
    if (!lost_at_ && !unacked && now - home.news_at > kPublishTime) home.fresh = false;
    if (DueAt(home) > now) continue;
    if (now >= home.deadline_at - options_.last_call) home.last_call = true;
    if (!lost_at_ && !unacked) continue;
    home.fresh = false;
    home.running = true;
    ++running_;
    due.push_back(home.request);
    for (const auto& [model, member] : home.members) due.back().members.push_back(member);
  }
  return due;
}

void PublishSchedule::Published(const std::string& job, bool ok, absl::Duration now) {
  Home* home = Find(job);
  if (home == nullptr || !home->running) return;
  home->running = false;
  --running_;
  if (ok) return;
  home->fresh = true;
  home->not_before = now + kRetry;
}

absl::Duration PublishSchedule::NextWakeup() const {
  absl::Duration next = absl::InfiniteDuration();
  for (const auto& [job, home] : publish_schedule_) next = std::min(next, DueAt(home));
  return next;
}

}  // namespace traind::worker
