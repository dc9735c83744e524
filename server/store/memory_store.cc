#include "server/store/memory_store.h"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <set>
#include <utility>

#include "common/base/status_macros.h"
#include "server/store/commit_checks.h"
#include "server/store/usage.h"

namespace traind {
namespace {

// Returns the Job as a database would, without the fields that are not stored.
Job AsStored(Job job) {
  for (Task& task : job.tasks) task.live.reset();
  job.pending_reason = PendingReason::kNone;
  job.waits_for.clear();
  job.expected_start = absl::InfiniteFuture();
  job.queue_position = 0;
  job.estimated_finish = absl::InfiniteFuture();
  return job;
}

// Moves the times of a Job by a step of the wall clock; see Mutations::clock_step.
void MoveTimes(Job& job, absl::Duration step) {
  absl::Time bound = job.spec.deadline.value_or(absl::InfiniteFuture());
  const bool by_spec = job.deadline == bound ||
                       (job.spec.budget && job.deadline == ClockStart(job) + *job.spec.budget);
  job.accepted_at += step;
  // Without it a waiting Job has no end but that of its spec.
  if (job.spec.budget && job.after.empty())
    bound = std::min(bound, ClockStart(job) + *job.spec.budget);
  job.deadline = by_spec ? bound : job.deadline + step;
  job.started_at += step;
  for (Task& task : job.tasks) task.not_before += step;
  for (Attempt& attempt : job.attempts) {
    attempt.started_at += step;
    attempt.ended_at += step;
  }
  for (Plan& plan : job.plans) plan.at += step;
  for (Decision& decision : job.decisions) decision.at += step;
  if (job.prediction) job.prediction->at += step;
}

const Measured* FirstMeasured(const Job& job) {
  for (const Task& task : job.tasks) {
    if (task.kind == TaskKind::kTrain && task.measured.step_s > 0) return &task.measured;
  }
  return nullptr;
}

}  // namespace

const MemoryStore::Row* MemoryStore::Find(const std::string& id) const {
  const auto found = by_id_.find(id);
  if (found == by_id_.end() || rows_[found->second].deleting) return nullptr;
  return &rows_[found->second];
}

absl::Status MemoryStore::Check(const Mutations& m) const {
  RETURN_IF_ERROR(CheckLastAttempt(last_attempt_, m.last_attempt));
  std::map<std::string, const Job*> latest;
  std::set<std::pair<std::string, std::string>> requests;
  for (const auto& job : m.jobs) {
    const Row* row = Find(job->id);
    const Job*& before = latest[job->id];
    if (before == nullptr && row != nullptr) before = row->job.get();
    RETURN_IF_ERROR(CheckChange(before, *job));
    if (before == nullptr && !job->request_id.empty()) {
      bool taken = !requests.emplace(job->owner, job->request_id).second;
      for (const Row& other : rows_) {
        taken |= !other.deleting && other.job->owner == job->owner &&
                 other.job->request_id == job->request_id;
      }
      if (taken) {
        return absl::AbortedError(absl::StrCat("request ", job->request_id, " is taken"));
      }
    }
    before = job.get();
  }
  const auto known = [&](const std::string& id) {
    return latest.count(id) > 0 || Find(id) != nullptr;
  };
  for (const auto& [id, checkpoint] : m.checkpoints) {
    if (Find(id) == nullptr) return absl::NotFoundError(absl::StrCat("no job ", id));
    const auto after = latest.find(id);
    RETURN_IF_ERROR(CheckCheckpoint(Find(id)->job.get(),
                                    after == latest.end() ? nullptr : after->second, checkpoint));
  }
  for (const auto& event : m.events) {
    if (!known(event.job)) return absl::NotFoundError(absl::StrCat("no job ", event.job));
  }
  for (const auto& point : m.metrics) {
    if (!known(point.job)) return absl::NotFoundError(absl::StrCat("no job ", point.job));
  }
  for (const auto& deletion : m.deletions) {
    const auto after = latest.find(deletion.job);
    const auto found = by_id_.find(deletion.job);
    const bool stored = found != by_id_.end() && !rows_[found->second].purged;
    if (after == latest.end() && !stored) {
      return absl::NotFoundError(absl::StrCat("no job ", deletion.job));
    }
    const Job& job = after != latest.end() ? *after->second : *rows_[found->second].job;
    if (!IsTerminal(job.state)) {
      return absl::AbortedError(absl::StrCat("job ", deletion.job, " is not over; it stays"));
    }
  }
  return absl::OkStatus();
}

void MemoryStore::Retain(const Mutations& m) {
  for (const auto& deletion : m.deletions) {
    rows_[by_id_[deletion.job]].deleting = true;
    deleted_[deletion.job] = deletion.at;
  }
  const auto forget = [this](const std::string& id) {
    Row& row = rows_[by_id_.at(id)];
    const auto rows = static_cast<int64_t>(row.metrics.size());
    row.metrics.erase(row.metrics.begin(), row.metrics.begin() + std::min(rows, kPurgeRows));
    const auto lines = static_cast<int64_t>(row.events.size());
    row.events.erase(row.events.begin(), row.events.begin() + std::min(lines, kPurgeRows));
    return row.metrics.empty() && row.events.empty();
  };
  for (const auto& purge : m.purges) {
    const auto found = by_id_.find(purge.job);
    if (found == by_id_.end() || !rows_[found->second].deleting || !forget(purge.job)) continue;
    rows_[found->second].purged = true;
  }
  for (const std::string& job : m.forgotten) {
    if (const Row* row = Find(job); row != nullptr && IsTerminal(row->job->state)) forget(job);
  }
  for (const auto& [id, pinned] : m.pins) {
    if (Find(id) == nullptr) continue;
    Row& row = rows_[by_id_.at(id)];
    Job job = *row.job;
    job.pinned = pinned;
    row.job = std::make_shared<const Job>(std::move(job));
  }
}

absl::Status MemoryStore::Commit(const Mutations& m) {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(failure_);
  RETURN_IF_ERROR(Check(m));
  for (const auto& job : m.jobs) {
    const auto [at, added] = by_id_.emplace(job->id, rows_.size());
    if (added) rows_.emplace_back();
    Row& row = rows_[at->second];
    row.job = std::make_shared<const Job>(AsStored(*job));
    if (row.job->prediction) {
      row.answers[row.job->prediction->number] = AnswerOf(*row.job->prediction);
    }
  }
  for (const auto& event : m.events) {
    Row& row = rows_[by_id_[event.job]];
    row.events.push_back({++row.last_event, event.at, event.kind, event.detail});
  }
  for (const auto& remark : m.remarks) {
    if (Find(remark.job) == nullptr) continue;
    Row& row = rows_[by_id_[remark.job]];
    row.events.push_back({++row.last_event, remark.at, remark.kind, remark.detail});
  }
  for (const auto& [id, checkpoint] : m.checkpoints) {
    auto& stored = rows_[by_id_[id]].checkpoints;
    const auto same = [&c = checkpoint](const Checkpoint& other) {
      return other.attempt == c.attempt && other.step == c.step;
    };
    if (std::none_of(stored.begin(), stored.end(), same)) stored.push_back(checkpoint);
  }
  for (const MetricPoint& point : m.metrics) {
    auto& metrics = rows_[by_id_[point.job]].metrics;
    metrics.push_back({static_cast<int64_t>(metrics.size()) + 1, point});
  }
  for (Row& row : rows_) {
    if (m.clock_step == absl::ZeroDuration() || IsTerminal(row.job->state)) continue;
    auto moved = std::make_shared<Job>(*row.job);
    MoveTimes(*moved, m.clock_step);
    row.job = std::move(moved);
    for (auto& [number, answer] : row.answers) answer.at += m.clock_step;
  }
  for (const Mutations::WorkerRow& row : m.workers) {
    workers_[row.id] = {row.id, row.hostname, row.mode, row.drain_at, row.silent};
  }
  for (const Quota& quota : m.quotas) quotas_[quota.subject] = quota;
  for (const QuotaSubject& subject : m.removed_quotas) quotas_.erase(subject);
  Retain(m);
  if (m.last_attempt > 0) last_attempt_ = m.last_attempt;
  if (m.last_seen) last_seen_ = *m.last_seen;
  if (m.awaited) awaited_ = *m.awaited;
  return absl::OkStatus();
}

absl::StatusOr<Snapshot> MemoryStore::LoadSnapshot() {
  absl::MutexLock lock(&mutex_);
  Snapshot snapshot;
  for (const Row& row : rows_) {
    if (!IsTerminal(row.job->state)) {
      snapshot.active.push_back(*row.job);
    } else if (!row.deleting && !row.job->attempts.empty() &&
               row.job->finished_at >= last_seen_ - kEndedLately) {
      snapshot.ended_lately.push_back(row.job->id);
    }
  }
  snapshot.last_attempt = last_attempt_;
  snapshot.last_seen = last_seen_;
  snapshot.awaited = awaited_;
  for (const auto& [subject, quota] : quotas_) snapshot.quotas.push_back(quota);
  for (const auto& [id, worker] : workers_) {
    const bool noted = worker.mode != WorkerMode::kNone || worker.silent > absl::ZeroDuration();
    if (noted) snapshot.workers.push_back(worker);
  }
  snapshot.usage = UsageAfter(UsageStart(snapshot.quotas, last_seen_));
  return snapshot;
}

std::vector<AttemptUsage> MemoryStore::UsageAfter(absl::Time since) const {
  std::vector<AttemptUsage> usage;
  for (const Row& row : rows_) {
    for (const Attempt& attempt : row.job->attempts) {
      const auto used = UsageOf(*row.job, attempt);
      if (used && used->end > since) usage.push_back(*used);
    }
  }
  return usage;
}

absl::StatusOr<std::vector<AttemptUsage>> MemoryStore::UsageSince(absl::Time since) {
  absl::MutexLock lock(&mutex_);
  return UsageAfter(since);
}

absl::StatusOr<bool> MemoryStore::HasOwner(const std::string& owner) {
  absl::MutexLock lock(&mutex_);
  return std::any_of(rows_.begin(), rows_.end(),
                     [&owner](const Row& row) { return row.job->owner == owner; });
}

absl::StatusOr<Job> MemoryStore::GetJob(const std::string& id) {
  absl::MutexLock lock(&mutex_);
  const Row* row = Find(id);
  if (row == nullptr) return absl::NotFoundError(absl::StrCat("no job ", id));
  return *row->job;
}

absl::StatusOr<std::vector<std::string>> MemoryStore::FindByName(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> ids;
  for (auto row = rows_.rbegin(); row != rows_.rend() && ids.size() < kMostNamed; ++row) {
    if (row->job->spec.name == name && !row->deleting) ids.push_back(row->job->id);
  }
  return ids;
}

absl::StatusOr<Job> MemoryStore::FindByRequest(const std::string& owner,
                                               const std::string& request_id) {
  absl::MutexLock lock(&mutex_);
  for (const Row& row : rows_) {
    if (!row.deleting && !request_id.empty() && row.job->owner == owner &&
        row.job->request_id == request_id) {
      return *row.job;
    }
  }
  return absl::NotFoundError(absl::StrCat("no request ", request_id));
}

absl::StatusOr<std::vector<std::optional<KnownRequest>>> MemoryStore::FindRequests(
    const std::vector<RequestKey>& requests) {
  std::vector<std::optional<KnownRequest>> known;
  for (const RequestKey& request : requests) {
    known.emplace_back();
    const auto job = FindByRequest(request.owner, request.request_id);
    if (job.ok()) known.back() = KnownRequest{job->id, job->asked_sha256};
  }
  return known;
}

std::vector<absl::StatusOr<KnownSubmit>> MemoryStore::FindSubmits(
    const std::vector<SubmitKey>& submits) {
  std::vector<absl::StatusOr<KnownSubmit>> known;
  for (const SubmitKey& submit : submits) {
    KnownSubmit& one = known.emplace_back(KnownSubmit()).value();
    auto job = FindByRequest(submit.request.owner, submit.request.request_id);
    if (job.ok()) one.job = *std::move(job);
    one.id_is_taken = GetJob(submit.id).ok();
  }
  return known;
}

absl::StatusOr<JobPage> MemoryStore::ListJobs(const JobFilter& filter) {
  absl::MutexLock lock(&mutex_);
  size_t before = rows_.size();
  if (!filter.page_token.empty() &&
      (!absl::SimpleAtoi(filter.page_token, &before) || before > rows_.size())) {
    return absl::InvalidArgumentError("page_token was not returned with an earlier page");
  }
  JobPage page;
  for (size_t i = before; i-- > 0;) {
    const Job& job = *rows_[i].job;
    if (rows_[i].deleting) continue;
    if (!filter.states.empty() &&
        std::find(filter.states.begin(), filter.states.end(), job.state) == filter.states.end()) {
      continue;
    }
    if (!std::includes(job.spec.labels.begin(), job.spec.labels.end(), filter.labels.begin(),
                       filter.labels.end())) {
      continue;
    }
    if (static_cast<int>(page.jobs.size()) == std::max(1, filter.limit)) {
      page.next_page_token = absl::StrCat(i + 1);
      break;
    }
    if (auto known = filter.known ? filter.known(job.id) : nullptr; known != nullptr) {
      page.jobs.push_back(std::move(known));
      continue;
    }
    const auto listed = std::make_shared<Job>(job);
    listed->decisions.clear();
    listed->attempts.clear();
    page.jobs.push_back(listed);
  }
  return page;
}

absl::StatusOr<JobStamp> MemoryStore::StampOf(const std::string& id) {
  ASSIGN_OR_RETURN(const Job job, GetJob(id));
  absl::MutexLock lock(&mutex_);
  const Row* row = Find(id);
  if (row == nullptr) return absl::NotFoundError(absl::StrCat("no job ", id));
  return JobStamp{job.version, row->metrics.empty() ? 0 : row->metrics.back().sequence, job.pinned};
}

absl::StatusOr<std::vector<StoredMetric>> MemoryStore::GetMetrics(const std::string& job,
                                                                  int64_t after_sequence, int limit,
                                                                  const std::string& name) {
  absl::MutexLock lock(&mutex_);
  std::vector<StoredMetric> metrics;
  const Row* row = Find(job);
  if (row == nullptr) return metrics;
  for (const StoredMetric& metric : row->metrics) {
    const bool begins = absl::EndsWith(name, ":") && absl::StartsWith(metric.point.name, name);
    if (!name.empty() && metric.point.name != name && !begins) continue;
    if (metric.sequence > after_sequence && static_cast<int>(metrics.size()) < limit) {
      metrics.push_back(metric);
    }
  }
  return metrics;
}

absl::StatusOr<std::vector<Answer>> MemoryStore::ListAnswers(const std::string& job) {
  absl::MutexLock lock(&mutex_);
  std::vector<Answer> answers;
  const Row* row = Find(job);
  if (row == nullptr) return answers;
  for (const auto& [number, answer] : row->answers) answers.push_back(answer);
  return answers;
}

absl::StatusOr<std::vector<StoredEvent>> MemoryStore::GetEvents(const std::string& job,
                                                                int64_t after_sequence, int limit) {
  absl::MutexLock lock(&mutex_);
  std::vector<StoredEvent> events;
  const Row* row = Find(job);
  if (row == nullptr) return events;
  for (const StoredEvent& event : row->events) {
    if (event.sequence > after_sequence && static_cast<int>(events.size()) < limit) {
      events.push_back(event);
    }
  }
  return events;
}

absl::StatusOr<std::vector<Checkpoint>> MemoryStore::ListCheckpoints(const std::string& job) {
  absl::MutexLock lock(&mutex_);
  const Row* row = Find(job);
  if (row == nullptr) return std::vector<Checkpoint>();
  std::vector<Checkpoint> checkpoints = row->checkpoints;
  std::sort(checkpoints.begin(), checkpoints.end(), [](const Checkpoint& a, const Checkpoint& b) {
    return std::tie(a.attempt, a.step) < std::tie(b.attempt, b.step);
  });
  return checkpoints;
}

absl::StatusOr<std::vector<Job>> MemoryStore::FindTrained(const std::string& cache_key,
                                                          const std::string& content_sha256) {
  absl::MutexLock lock(&mutex_);
  std::vector<Job> jobs;
  for (auto row = rows_.rbegin(); row != rows_.rend() && jobs.size() < kMostTrained; ++row) {
    const Job& job = *row->job;
    const bool fits = !row->deleting && !cache_key.empty() && job.spec.cache_key == cache_key &&
                      job.table.content_sha256 == content_sha256;
    if (fits) jobs.push_back(job);
  }
  return jobs;
}

absl::StatusOr<Measured> MemoryStore::RecordedSpeed(const std::string& speed_key,
                                                    const std::string& content_sha256,
                                                    int64_t train_bytes) {
  absl::MutexLock lock(&mutex_);
  for (const bool by_content : {true, false}) {
    for (auto row = rows_.rbegin(); row != rows_.rend(); ++row) {
      const Job& job = *row->job;
      const bool same = by_content
                            ? !content_sha256.empty() && job.table.content_sha256 == content_sha256
                            : train_bytes > 0 && job.spec.train_bytes == train_bytes;
      const Measured* measured = FirstMeasured(job);
      const bool alike = !speed_key.empty() && job.spec.speed_key == speed_key;
      if (alike && same && measured != nullptr && job.state == JobState::kSucceeded)
        return *measured;
    }
  }
  return absl::NotFoundError("no such work has been measured yet");
}

absl::StatusOr<std::vector<EndedJob>> MemoryStore::ListEnded() {
  absl::MutexLock lock(&mutex_);
  std::vector<EndedJob> ended;
  for (const Row& row : rows_) {
    const Job& job = *row.job;
    if (row.deleting || !IsTerminal(job.state)) continue;
    const bool known = job.finished_at != absl::InfiniteFuture();
    ended.push_back({job.id, known ? job.finished_at : job.accepted_at, job.pinned,
                     !row.metrics.empty() || !row.events.empty(), job.spec.cache_key,
                     job.table.table});
  }
  std::stable_sort(ended.begin(), ended.end(),
                   [](const EndedJob& a, const EndedJob& b) { return a.ended_at < b.ended_at; });
  return ended;
}

absl::StatusOr<std::vector<std::string>> MemoryStore::ListDeleting(absl::Time) {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> ids;
  for (const Row& row : rows_) {
    if (row.deleting && !row.purged) ids.push_back(row.job->id);
  }
  return ids;
}

absl::StatusOr<absl::Time> MemoryStore::FindDeleted(const std::string& id) {
  absl::MutexLock lock(&mutex_);
  const auto found = deleted_.find(id);
  if (found == deleted_.end())
    return absl::NotFoundError(absl::StrCat("no job ", id, " was deleted"));
  return found->second;
}

absl::StatusOr<bool> MemoryStore::IsInASpec(const std::string& text) {
  absl::MutexLock lock(&mutex_);
  return std::any_of(rows_.begin(), rows_.end(), [&text](const Row& row) {
    return !row.deleting && row.job->spec_json.find(text) != std::string::npos;
  });
}

void MemoryStore::FailCommits(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  failure_ = std::move(status);
}

}  // namespace traind
