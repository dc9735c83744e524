// Quotas: what is used of them, who may still submit, and whose training has to stop.
#include <absl/strings/str_cat.h>

#include <algorithm>

#include "server/control/control_core_impl.h"
#include "server/plan/planner.h"

namespace traind {
namespace {

double Seconds(absl::Duration duration) { return absl::ToDoubleSeconds(duration); }

}  // namespace

// Where much runs, the figures of a moment ago are carried on, with what began and ended since.
QuotaAccount::Running ControlCore::Impl::RunningOn(QuotaAccount& account) const {
  if (attempts_.size() > kFewAttempts && now_ < account.walked_at + kWalkInterval) {
    QuotaAccount::Running running = account.walked;
    running.used_s += running.slots * Seconds(now_ - account.walked_at);
    return running;
  }
  QuotaAccount::Running running;
  for (const auto& [id, live] : attempts_) {
    const auto slots = static_cast<double>(live.SlotCount());
    if (!live.open || slots == 0) continue;
    const Job& job = live.job->view();
    if (!account.use.quota().subject.Covers(job.owner, job.spec.labels)) continue;
    running.slots += slots;
    running.used_s += slots * Seconds(now_ - live.started_at);
    // Stopping takes a while, too.
    running.stop_s = std::max(running.stop_s, StopSeconds(TypicalFold(*live.job)));
  }
  account.walked = running;
  account.walked_at = now_;
  return running;
}

QuotaState ControlCore::Impl::StateOf(QuotaAccount& account) const {
  QuotaState state;
  state.quota = account.use.quota();
  state.used_s = account.use.Used(now_) + RunningOn(account).used_s;
  state.left_s = account.use.Left(state.used_s);
  if (state.left_s <= 0) state.free_at = account.use.FreeAt(now_);
  state.warned_percent = WarningMark(state.used_s, Seconds(state.quota.allowance));
  return state;
}

void ControlCore::Impl::Handle(SetQuota& event) {
  const QuotaSubject subject = event.quota.subject;
  if (!event.known && quotas_.count(subject) == 0) {
    return Answer(event.call,
                  absl::NotFoundError(
                      absl::StrCat(Text(subject), " is not known: it has no job and no quota yet")),
                  nullptr);
  }
  QuotaAccount account((QuotaUse(event.quota)));
  for (const AttemptUsage& used : event.history) {
    if (subject.Covers(used.owner, used.labels)) account.use.Add(used.start, used.end, used.slots);
  }
  const auto [it, added] = quotas_.insert_or_assign(subject, std::move(account));
  ++quota_changes_;
  turn_.mutations.quotas.push_back(event.quota);
  turn_.mutations.durable = true;
  Answer(event.call, absl::OkStatus(), nullptr);
  turn_.replies.back().quotas.push_back(StateOf(it->second));
}

void ControlCore::Impl::Handle(RemoveQuota& event) {
  if (quotas_.erase(event.subject) == 0) {
    return Answer(event.call,
                  absl::NotFoundError(absl::StrCat(Text(event.subject), " has no quota")), nullptr);
  }
  ++quota_changes_;
  turn_.mutations.removed_quotas.push_back(event.subject);
  turn_.mutations.durable = true;
  Answer(event.call, absl::OkStatus(), nullptr);
}

void ControlCore::Impl::Handle(ListQuotas& event) {
  Answer(event.call, absl::OkStatus(), nullptr);
  for (auto& [subject, account] : quotas_) {
    turn_.replies.back().quotas.push_back(StateOf(account));
  }
}

void ControlCore::Impl::RestoreQuotas(const Snapshot& snapshot) {
  for (const AttemptUsage& used : snapshot.usage) {
    shares_.Add(used.owner, used.slots, used.start, used.end);
  }
  for (const Quota& quota : snapshot.quotas) {
    QuotaAccount account((QuotaUse(quota)));
    for (const AttemptUsage& used : snapshot.usage) {
      if (!quota.subject.Covers(used.owner, used.labels)) continue;
      account.use.Add(used.start, used.end, used.slots);
    }
    quotas_.insert_or_assign(quota.subject, std::move(account));
  }
}

// An Attempt has ended now.
void ControlCore::Impl::Charge(const LiveAttempt& live) {
  const auto slots = static_cast<double>(live.SlotCount());
  if (slots == 0) return;
  const Job& job = live.job->view();
  shares_.Ended(job.owner, live.SlotCount(), live.started_at, now_);
  for (auto& [subject, account] : quotas_) {
    if (!subject.Covers(job.owner, job.spec.labels)) continue;
    account.use.Add(live.started_at, now_, slots);
    account.Run(live.started_at, -slots);
  }
}

// It holds its slots from started_at on.
void ControlCore::Impl::RunOnQuotas(const LiveAttempt& live) {
  const auto slots = static_cast<double>(live.SlotCount());
  const Job& job = live.job->view();
  for (auto& [subject, account] : quotas_) {
    if (subject.Covers(job.owner, job.spec.labels)) account.Run(live.started_at, slots);
  }
}

void QuotaAccount::Run(absl::Time started_at, double more_slots) {
  if (walked_at == absl::InfinitePast()) return;
  walked.slots += more_slots;
  walked.used_s += more_slots * Seconds(walked_at - started_at);
}

absl::Status ControlCore::Impl::CheckQuotasOf(const Job& job) {
  for (auto& [subject, account] : quotas_) {
    if (!subject.Covers(job.owner, job.spec.labels)) continue;
    const QuotaState state = StateOf(account);
    if (state.left_s > 0) continue;
    return absl::ResourceExhaustedError(absl::StrCat(
        "quota: ", Text(subject), " has used ", Text(absl::Seconds(state.used_s)), " of ",
        Text(state.quota), "; something is free again at ", absl::FormatTime(state.free_at)));
  }
  return absl::OkStatus();
}

// A Job that may want more than is left gets what is left, and is told so.
void ControlCore::Impl::NoteQuotas(JobEntry& entry) {
  for (auto& [subject, account] : quotas_) {
    if (!subject.Covers(entry.view().owner, entry.view().spec.labels)) continue;
    const QuotaState state = StateOf(account);
    const std::string used = absl::StrCat(
        Text(subject), " has used ", Text(absl::Seconds(state.used_s)), " of ", Text(state.quota));
    if (state.warned_percent > 0) {
      EditDurably(entry).warnings.push_back(
          absl::StrCat("quota: ", used, ", more than ", state.warned_percent, " %"));
    }
    const Window window = WindowOf(entry);
    if (!window.bounded()) continue;
    const int slots = std::max(1, Gangs(entry)) * entry.view().spec.slots;
    const double most_s = Seconds(window.length()) * slots;
    if (most_s <= state.left_s) continue;
    Decide(entry, DecisionRule::kQuota, used,
           absl::StrCat("up to ", Text(absl::Seconds(most_s)), " on ", slots, " slots"),
           absl::StrCat("at most the ", Text(absl::Seconds(state.left_s)), " that are left"));
  }
}

// When what is left will be used up, at the rate that the Job may use it; for its Plan.
absl::Time ControlCore::Impl::QuotaEndOf(const JobEntry& entry) const {
  absl::Time end = absl::InfiniteFuture();
  for (auto& [subject, account] : quotas_) {
    if (!subject.Covers(entry.view().owner, entry.view().spec.labels)) continue;
    const QuotaAccount::Running running = RunningOn(account);
    const double own = static_cast<double>(ParallelFolds(entry) * entry.view().spec.slots);
    const double left_s = Seconds(account.use.quota().allowance) - account.used_s - running.used_s;
    const double rate = std::max({1.0, own, running.slots});
    end = std::min(end, now_ + absl::Seconds(std::max(0.0, left_s) / rate - running.stop_s));
  }
  return end;
}

// Warns at each mark, and stops the training of those for whom nothing is left.
void ControlCore::Impl::CheckQuotas() {
  quota_check_at_ = absl::InfiniteFuture();
  for (auto& [subject, account] : quotas_) {
    account.used_s = account.use.Used(now_);
    const QuotaAccount::Running running = RunningOn(account);
    const double allowance_s = Seconds(account.use.quota().allowance);
    const double used_s = account.used_s + running.used_s;
    const int mark = WarningMark(used_s, allowance_s);
    const bool over = used_s + running.slots * running.stop_s >= allowance_s;
    if (running.slots > 0) {
      double left_s = allowance_s - used_s - running.slots * running.stop_s;
      for (const double mark_s : {0.5 * allowance_s, 0.8 * allowance_s, 0.9 * allowance_s}) {
        if (mark_s > used_s) left_s = std::min(left_s, mark_s - used_s);
      }
      const absl::Duration wait = absl::Seconds(std::max(0.05, left_s / running.slots));
      quota_check_at_ = std::min(quota_check_at_, now_ + wait);
    }
    const bool warns = mark > account.warned;
    account.warned = mark;
    if (!warns && !over) continue;
    const std::string used = absl::StrCat(Text(subject), " has used ", Text(absl::Seconds(used_s)),
                                          " of ", Text(account.use.quota()));
    for (const auto* jobs : {&training_, &comebacks_}) {
      for (const auto& [sequence, entry] : *jobs) {
        const Job& job = entry->view();
        if (!subject.Covers(job.owner, job.spec.labels) || IsTerminal(job.state)) continue;
        if (warns) {
          EditDurably(*entry).warnings.push_back(
              absl::StrCat("quota: ", used, ", more than ", mark, " %"));
        }
        if (over && !TrainsNothing(job) && !StopsTraining(job) &&
            job.state != JobState::kFinalizing) {
          StopForQuota(*entry, used);
        }
      }
    }
  }
}

void ControlCore::Impl::StopForQuota(JobEntry& entry, const std::string& used) {
  Job& job = EditDurably(entry);
  job.quota_reached = true;
  entry.finish_at = now_;
  for (size_t i = 1; i < job.tasks.size(); ++i) {
    if (job.tasks[i].state == TaskState::kPending) {
      SettleFold(entry, static_cast<int>(i), "nothing is left of a quota");
    }
  }
  Decide(entry, DecisionRule::kQuota, used, absl::StrCat("train ", job.spec.folds, " folds"),
         "stop training now and predict with what there is");
}

}  // namespace traind
