#include "tests/simulation/sim_collector.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "common/base/job_layout.h"
#include "server/retention/job_needs.h"

namespace traind::simulation {
namespace {

// Of a simulated file.
constexpr int64_t kFileBytes = 1;

}  // namespace

void SimCollector::Start() {
  limits_.jobs = chance_.Happens(0.3) ? chance_.Int(1, 6) : 1000;
  if (chance_.Happens(0.3)) limits_.job_age = absl::Seconds(chance_.LogUniform(2, 60));
  limits_.interim_age = absl::Seconds(chance_.LogUniform(0.5, 20));
  limits_.history_age = absl::Seconds(chance_.LogUniform(0.5, 60));
  if (chance_.Happens(0.3)) limits_.bytes = chance_.Int(5, 100);
  every_ = absl::Seconds(chance_.LogUniform(0.5, 5));
  CollectSoon();
}

void SimCollector::CollectSoon() {
  world_->After(every_, [this] { Collect(); });
}

// The files of Attempts that nobody needs any more.
std::vector<std::string> SimCollector::InterimOf(const Job& job) const {
  const auto standing = disk_->Standing(job.id);
  const auto needed = NeededFolders(job, standing ? &*standing : nullptr);
  const std::string root = absl::StrCat(JobDir(job.id), "/");
  std::vector<std::string> interim;
  for (const std::string& path : disk_->List(root)) {
    const std::string inside = path.substr(root.size());
    const std::string top = inside.substr(0, inside.find('/'));
    const bool of_attempt = top == "attempts" || top == "reused";
    if (of_attempt && !needed.contains(AttemptFolder(inside))) interim.push_back(path);
  }
  return interim;
}

JobKept SimCollector::KeptOf(const EndedJob& ended, const Job& job) const {
  JobKept kept;
  kept.id = ended.id;
  kept.ended_at = ended.ended_at;
  kept.pinned = ended.pinned;
  kept.has_history = ended.has_history;
  kept.cache_key = ended.cache_key;
  const std::string root = absl::StrCat(JobDir(ended.id), "/");
  kept.bytes = kFileBytes * static_cast<int64_t>(disk_->List(root).size());
  kept.interim_bytes = kFileBytes * static_cast<int64_t>(InterimOf(job).size());
  return kept;
}

void SimCollector::Collect() {
  CollectSoon();
  if (!coordinator_->up()) return;
  if (coordinator_->starts() != starts_) {  // the one before has died in the middle
    starts_ = coordinator_->starts();
    items_.clear();
    const auto begun = coordinator_->store().ListDeleting(coordinator_->Now());
    for (const std::string& job : *begun) FinishDeletion(job);
  }
  if (!items_.empty()) return;
  StateContent content;
  const auto all = coordinator_->store().ListEnded();
  for (const EndedJob& ended : *all) {
    const auto job = coordinator_->store().GetJob(ended.id);
    if (job.ok()) content.kept.push_back(KeptOf(ended, *job));
  }
  world_->After(Step(), [this, content] { Plan(content); });
}

// Jobs at work are listed last: one that was submitted meanwhile needs what it needs.
void SimCollector::Plan(StateContent content) {
  if (!coordinator_->up() || coordinator_->starts() != starts_) return;
  const auto snapshot = coordinator_->store().LoadSnapshot();
  for (const Job& job : snapshot->active) {
    content.at_work.push_back(NeedsOf(job));
  }
  nlohmann::json jobs = nlohmann::json::array(), interim = nlohmann::json::array();
  for (GarbageItem& item : PlanRetention(content, limits_, coordinator_->Now())) {
    if (item.what == Garbage::kJob) jobs.push_back(item.name);
    if (item.what == Garbage::kInterim) interim.push_back(item.name);
    items_.push_back(std::move(item));
  }
  nlohmann::json& record = world_->Record("to_go");
  record["jobs"] = std::move(jobs);
  record["interim"] = std::move(interim);
  DropNext();
}

void SimCollector::DropNext() {
  if (items_.empty()) return;
  world_->After(Step(), [this, starts = starts_] {
    if (items_.empty() || !coordinator_->up() || coordinator_->starts() != starts) return;
    const GarbageItem item = items_.front();
    items_.pop_front();
    if (item.what == Garbage::kInterim) DropInterim(item.name);
    if (item.what == Garbage::kJob) Delete(item.name);
    DropNext();
  });
}

void SimCollector::DropInterim(const std::string& id) {
  const auto job = coordinator_->store().GetJob(id);
  if (!job.ok()) return;
  for (const std::string& path : InterimOf(*job)) disk_->Remove(path);
  world_->Record("interim_dropped")["job"] = id;
}

void SimCollector::Delete(const std::string& id) {
  const auto job = coordinator_->store().GetJob(id);
  if (!job.ok()) return;
  std::vector<int64_t> attempts;
  for (const Attempt& attempt : job->attempts) attempts.push_back(attempt.id);
  coordinator_->Call(
      [id, attempts](CallId call) -> Event {
        return DeleteJob{call, id, attempts};
      },
      [this, id](const Reply& reply) {
        if (reply.status.ok()) FinishDeletion(id);
      });
}

void SimCollector::FinishDeletion(const std::string& id) {
  world_->After(Step(), [this, id, starts = coordinator_->starts()] {
    if (!coordinator_->up() || coordinator_->starts() != starts) return;
    disk_->RemoveJob(id);
    coordinator_->Call(
        [id](CallId call) -> Event {
          return PurgeJob{call, id};
        },
        [](const Reply&) {});
  });
}

}  // namespace traind::simulation
