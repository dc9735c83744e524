// Running folds that make room for waiting ones of a higher class: they save a checkpoint, go, and
// are resumed later.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "server/control/control_core_impl.h"
#include "server/domain/names.h"
#include "server/schedule/preemption.h"

namespace traind {
namespace {

// So many Jobs of a shape in front of the line may stop others in one turn, and of all shapes.
constexpr size_t kMostClaims = 32;
// A fold that goes may not come back for as long as the others run. It needs this share of its
// window, and several times the moment in which slots change hands, before it would be too late.
constexpr double kSpareShare = 0.1;
constexpr double kSpareTurns = 3;

}  // namespace

// "preempted by job-2"; empty: no fold of it waits for that reason.
std::string ControlCore::Impl::PreemptedText(const Job& job) {
  for (const Task& task : job.tasks) {
    if (task.state != TaskState::kPending || task.attempt == 0 || IsExtra(task)) continue;
    const auto last = std::find_if(job.attempts.rbegin(), job.attempts.rend(),
                                   [&](const Attempt& row) { return row.id == task.attempt; });
    if (last == job.attempts.rend()) continue;
    if (last->end_reason == AttemptEndReason::kPreempted) return last->message;
  }
  return "";
}

// Of the folds that run, the lowest priority; it is looked for once in a while where many run.
int ControlCore::Impl::LowestRunning() {
  if (attempts_.size() > kFewAttempts && now_ < lowest_at_ + kWalkInterval) return lowest_;
  lowest_at_ = now_;
  lowest_ = std::numeric_limits<int>::max();
  for (const auto& [id, live] : attempts_) {
    if (!live.open || live.job == nullptr || live.kind != TaskKind::kTrain) continue;
    lowest_ = std::min(lowest_, live.job->view().spec.priority);
  }
  return lowest_;
}

// The Jobs in front of the line of which nothing runs, and whose owners may have more. One behind a
// Job that has slots waits for its turn within the class, and not for a lower one.
std::vector<JobEntry*> ControlCore::Impl::Starved(std::vector<Claim>& line) {
  const int lowest = LowestRunning();
  const auto starved = [lowest](const Urgency& urgency) {
    return urgency.priority > lowest && urgency.gangs == 0 && !urgency.extra_seeds_only;
  };
  std::vector<std::pair<Claim, JobEntry*>> in_order;
  for (auto first = train_queue_.cbegin(); first != train_queue_.cend();) {
    const auto next = SkipShape(first);
    const bool any = std::any_of(
        first, next, [&](const auto& queue) { return starved(queue.second.begin()->first); });
    for (JobEntry* entry : any ? NextInLine(first, kMostClaims) : std::vector<JobEntry*>()) {
      Claim claim;
      claim.candidate = MakeCandidate(*entry, 1, /*timed=*/true);
      in_order.emplace_back(std::move(claim), entry);
    }
    first = next;
  }
  std::stable_sort(in_order.begin(), in_order.end(), [](const auto& a, const auto& b) {
    return a.first.candidate.urgency < b.first.candidate.urgency;
  });
  std::vector<JobEntry*> entries;
  std::map<std::string, int> left;  // that owners may take
  for (auto& [claim, entry] : in_order) {
    if (!starved(claim.candidate.urgency) || entries.size() == kMostClaims) break;
    // Slots that its owner may not use are of no use to it.
    const Candidate& candidate = claim.candidate;
    int& owners = left.try_emplace(candidate.owner, candidate.slots_left).first->second;
    const bool fits = candidate.shape.slots <= owners;
    // A gang keeps what it may have.
    if (fits || GangsOfMachines(*entry) > 0) owners -= candidate.shape.slots;
    if (!fits) continue;
    line.push_back(std::move(claim));
    entries.push_back(entry);
  }
  return entries;
}

// What its Job says about a fold that could make room.
Holding ControlCore::Impl::HoldingOf(const LiveAttempt& live) const {
  const JobEntry& entry = *live.job;
  const Job& job = entry.view();
  const Task& task = job.tasks[static_cast<size_t>(live.task)];
  Holding holding;
  holding.attempt = live.id;
  holding.priority = job.spec.priority;
  bool attached = true;
  for (const AttemptPart& part : live.parts) {
    holding.parts.push_back({part.worker, part.slots});
    attached &= !part.over && workers_.at(part.worker).attached;
  }
  const absl::Time saved = task.checkpoint ? task.checkpoint->at : absl::InfinitePast();
  holding.lost_s =
      live.SlotCount() * absl::ToDoubleSeconds(now_ - std::max(live.started_at, saved));
  const bool answers = std::any_of(job.tasks.begin(), job.tasks.end(),
                                   [](const Task& t) { return t.member.has_value(); });
  const Window window = WindowOf(entry);
  holding.harm = IsExtra(task)       ? Harm::kExtraModel
                 : !window.bounded() ? Harm::kTime
                 : answers           ? Harm::kScore
                                     : Harm::kModel;
  holding.may_go = attached && live.open && !live.stop_sent && !live.saved_last &&
                   !StopsTraining(job) && job.state != JobState::kPaused &&
                   now_ >= live.started_at + options_.preempt_least_run;
  if (window.bounded() && !IsExtra(task)) {
    const absl::Duration spare = StartRuleOf(entry, live.task).Latest(task) - now_;
    holding.may_go &=
        spare > std::max(kSpareTurns * options_.preempt_after, kSpareShare * window.length());
  }
  for (const Attempt& row : job.attempts) {
    const bool same = row.fold == task.fold && row.trial == task.trial && row.seed == task.seed;
    if (row.kind != TaskKind::kTrain || !same) continue;
    if (row.end_reason != AttemptEndReason::kPreempted) continue;
    holding.may_go &= now_ >= row.ended_at + options_.preempt_pause;
  }
  return holding;
}

// The order was lost with the stream of the Worker.
void ControlCore::Impl::TellAgain() {
  for (const auto& [by, id] : preempted_) {
    const auto it = attempts_.find(id);
    if (it == attempts_.end() || !it->second.open || it->second.stop_sent) continue;
    if (!workers_.at(it->second.lead()).attached) continue;
    SendStop(it->second, StopMode::kDrop, StopReason::kPreempted,
             absl::StrCat("preempted by ", it->second.preempted_for));
  }
}

void ControlCore::Impl::Preempt() {
  TellAgain();
  preempt_check_at_ = preempted_.empty() ? absl::InfiniteFuture() : preempted_.begin()->first;
  if (options_.preempt_after == absl::InfiniteDuration() || train_queue_.empty()) return;
  std::vector<Claim> line;
  const std::vector<JobEntry*> entries = Starved(line);
  if (entries.empty()) return;
  absl::Time next = absl::InfiniteFuture();
  bool any_due = false;
  for (size_t i = 0; i < entries.size(); ++i) {
    const absl::Time late = line[i].candidate.urgency.latest_start - options_.preempt_after;
    const absl::Time due = std::min(entries[i]->starved_since + options_.preempt_after, late);
    line[i].due = due <= now_;
    any_due |= line[i].due;
    if (!line[i].due) next = std::min(next, due);
  }
  if (any_due) {
    // What keeps a fold from going changes with time.
    next = std::min(next, now_ + kWalkInterval);
    if (attempts_.size() <= kFewAttempts || now_ >= preempt_walk_at_ + kWalkInterval) {
      preempt_walk_at_ = now_;
      ChooseAndStop(line, entries);
    }
  }
  preempt_check_at_ = std::min(preempt_check_at_, next);
}

void ControlCore::Impl::ChooseAndStop(const std::vector<Claim>& line,
                                      const std::vector<JobEntry*>& entries) {
  NoteEnds();
  std::vector<Holding> holdings;
  for (const auto& [id, live] : attempts_) {
    if (live.open && live.job != nullptr && live.kind == TaskKind::kTrain) {
      holdings.push_back(HoldingOf(live));
    }
  }
  for (const Preemption& preemption :
       ChoosePreemptions(line, holdings, now_, options_.preempt_after, board_)) {
    StopFor(*entries[preemption.claim], preemption.attempts);
  }
}

// They are told to save a checkpoint and go, as where their Worker is drained.
void ControlCore::Impl::StopFor(JobEntry& entry, const std::vector<int64_t>& attempts) {
  const std::string why = absl::StrCat("preempted by ", entry.view().id);
  std::vector<std::string> told;
  for (const int64_t id : attempts) {
    LiveAttempt& live = attempts_.at(id);
    live.preempted_for = entry.view().id;
    live.expected_end = now_ + absl::Seconds(1);
    for (const AttemptPart& part : live.parts) {
      board_.ExpectFree(part.worker, part.slots, live.expected_end);
    }
    preempted_.insert({now_ + options_.preempt_grace, id});
    SendStop(live, StopMode::kDrop, StopReason::kPreempted, why);
    const Job& other = live.job->view();
    Log(*live.job, "preempted", absl::StrCat(id, " for ", entry.view().id));
    told.push_back(absl::StrCat(TaskName(other.tasks[static_cast<size_t>(live.task)]), " of ",
                                other.id, " (priority ", other.spec.priority, ")"));
  }
  preempt_check_at_ = std::min(preempt_check_at_, now_ + options_.preempt_grace);
  const int slots = ShapeNow(entry).slots;
  Decide(entry, DecisionRule::kPreempt,
         absl::StrCat("with priority ", entry.view().spec.priority, " it waits for ", slots,
                      slots == 1 ? " slot" : " slots", " since ", Text(now_ - entry.starved_since)),
         absl::StrCat(absl::StrJoin(told, ", "), told.size() == 1 ? " runs" : " run"),
         absl::StrCat(told.size() == 1 ? "that saves" : "those save", " a checkpoint and go",
                      told.size() == 1 ? "es" : "", "; its next fold starts then"));
}

// Those that have not gone by then are killed, and go on from the checkpoint before. One whose
// Worker is out of reach has no slots to give.
void ControlCore::Impl::EndPreempted() {
  while (!preempted_.empty() && preempted_.begin()->first <= now_) {
    const auto it = attempts_.find(preempted_.begin()->second);
    preempted_.erase(preempted_.begin());
    if (it == attempts_.end() || !it->second.open) continue;
    LiveAttempt& live = it->second;
    const std::string why = absl::StrCat("preempted by ", live.preempted_for);
    if (!workers_.at(live.lead()).attached) {
      preempted_.insert({now_ + options_.preempt_grace, live.id});
      continue;
    }
    Touch(*live.job);
    EndAttempt(live, AttemptEndReason::kPreempted, why);
    SendStop(live, StopMode::kAbort, StopReason::kPreempted, why);
  }
}

}  // namespace traind
