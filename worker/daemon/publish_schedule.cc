#include "worker/daemon/publish_schedule.h"

#include <algorithm>
#include <utility>

#include "common/publish/fold_member.h"

namespace traind::worker {
namespace {

constexpr absl::Duration kRetry = absl::Seconds(2);
// A living traind takes a fact within this.
constexpr absl::Duration kAckTime = absl::Milliseconds(100);
// A living traind publishes the facts that it has taken within this time.
constexpr absl::Duration kPublishTime = absl::Seconds(5);

}  // namespace

void PublishSchedule::Started(const TaskStart& task, absl::Duration now) {
  // Bounded by time: whom nobody works for any more, and whose deadline is over.
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    const PublishableJob& entry = it->second;
    const bool over = entry.deadline_at == absl::InfiniteDuration() || entry.deadline_at < now;
    if (over && !entry.running && now - entry.news_at > options_.keep) {
      jobs_.erase(it++);
    } else {
      ++it;
    }
  }
  PublishableJob& entry = jobs_[task.job];
  entry.news_at = now;
  entry.deadline_at = task.deadline_at;
  entry.request.job = task.job;
  if (!task.table.empty()) entry.request.table = task.table;
  if (!task.metric.empty()) entry.request.metric = task.metric;
  if (task.spec_folds > 0) entry.request.spec_folds = task.spec_folds;
  entry.request.plan_cut = task.plan_cut;
}

PublishSchedule::PublishableJob* PublishSchedule::Find(const std::string& job) {
  const auto it = jobs_.find(job);
  return it == jobs_.end() ? nullptr : &it->second;
}

void PublishSchedule::Replanned(const std::string& job, bool plan_cut,
                                std::optional<absl::Duration> deadline_at) {
  PublishableJob* entry = Find(job);
  if (entry == nullptr) return;
  entry->request.plan_cut = plan_cut;
  if (!deadline_at || *deadline_at == entry->deadline_at) return;
  entry->deadline_at = *deadline_at;
  entry->last_call = false;
}

void PublishSchedule::TableRead(const std::string& job, const rank_protocol::TableReady& table,
                                absl::Duration now) {
  PublishableJob* entry = Find(job);
  if (entry == nullptr) return;
  entry->request.table = table.table;
  entry->news_at = now;
}

void PublishSchedule::FloorSaved(const std::string& job, absl::Duration now) {
  PublishableJob* entry = Find(job);
  if (entry == nullptr) return;
  entry->fresh = true;
  entry->news_at = now;
}

void PublishSchedule::FoldSaved(const TaskStart& task, const rank_protocol::FoldSaved& fold,
                                absl::Duration now) {
  PublishableJob* entry = Find(task.job);
  if (entry == nullptr) return;
  if (IsExtra(task) && !fold.last) return;  // an extra model answers once it is trained
  Member& member = entry->members[{task.fold, task.trial, task.seed}];
  if (member.complete && !fold.complete) return;  // a retry's first steps hide no whole fold
  member = MemberOf(fold.attempt, fold);
  member.fold = task.fold;
  member.trial = task.trial;
  member.seed = task.seed;
  member.kind = task.model;
  entry->fresh = true;
  entry->last_call = false;
  entry->news_at = now;
}

void PublishSchedule::Connected() { lost_at_.reset(); }

void PublishSchedule::Disconnected(absl::Duration now) {
  if (!lost_at_) lost_at_ = now;
}

absl::Duration PublishSchedule::DueAt(const PublishableJob& entry) const {
  if (entry.running || entry.request.table.empty() || entry.request.metric.empty()) {
    return absl::InfiniteDuration();
  }
  if (!entry.fresh) return absl::InfiniteDuration();
  const absl::Duration last_call = entry.deadline_at - options_.last_call;
  absl::Duration due = absl::InfiniteDuration();
  // There is no time for patience before a deadline.
  if (lost_at_) {
    due = std::max({entry.news_at, *lost_at_, std::min(*lost_at_ + options_.patience, last_call)});
  }
  if (!entry.last_call) due = std::min(due, std::max(last_call, entry.news_at + kAckTime));
  return std::max(due, entry.not_before);
}

std::vector<PublishRequest> PublishSchedule::Due(absl::Duration now, bool unacked) {
  std::vector<PublishRequest> due;
  for (auto& [job, entry] : jobs_) {
    if (!lost_at_ && !unacked && now - entry.news_at > kPublishTime) entry.fresh = false;
    if (DueAt(entry) > now) continue;
    if (now >= entry.deadline_at - options_.last_call) entry.last_call = true;
    if (!lost_at_ && !unacked) continue;
    entry.fresh = false;
    entry.running = true;
    ++running_;
    due.push_back(entry.request);
    for (const auto& [model, member] : entry.members) due.back().members.push_back(member);
  }
  return due;
}

void PublishSchedule::Published(const std::string& job, bool ok, absl::Duration now) {
  PublishableJob* entry = Find(job);
  if (entry == nullptr || !entry->running) return;
  entry->running = false;
  --running_;
  if (ok) return;
  entry->fresh = true;
  entry->not_before = now + kRetry;
}

absl::Duration PublishSchedule::NextWakeup() const {
  absl::Duration next = absl::InfiniteDuration();
  for (const auto& [job, entry] : jobs_) next = std::min(next, DueAt(entry));
  return next;
}

}  // namespace traind::worker
