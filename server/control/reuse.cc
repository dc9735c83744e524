// Folds that earlier Jobs have trained: asked for once the data's content is known,
// before the first fold is started; taken over as if they had been trained here.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>

#include "server/control/control_core_impl.h"
#include "server/domain/names.h"

namespace traind {
namespace {

bool WantsReuse(const Spec& spec) {
  return !spec.from.empty() || (spec.cache_read && !spec.cache_key.empty());
}

bool HasTrained(const Job& job) {
  return std::any_of(job.tasks.begin() + 1, job.tasks.end(),
                     [](const Task& task) { return task.attempts > 0 || !task.from_job.empty(); });
}

// Whether a Job of this spec trains such a model.
bool MayHave(const Spec& spec, const TrainedFold& fold) {
  const int trials = std::max(1, static_cast<int>(spec.trials.size()));
  return fold.seed >= 0 && fold.seed < spec.seeds && fold.trial >= 0 && fold.trial < trials;
}

// "folds 0, 1, 2", of many models the first ones.
std::string FoldsText(const std::vector<std::string>& folds) {
  constexpr size_t kNamed = 10;
  const size_t named = std::min(kNamed, folds.size());
  return absl::StrCat(
      folds.size() == 1 ? "fold " : "folds ",
      absl::StrJoin(folds.begin(), folds.begin() + static_cast<ptrdiff_t>(named), ", "),
      named < folds.size() ? absl::StrCat(" and ", folds.size() - named, " more") : "");
}

}  // namespace

void ControlCore::Impl::AskReuse(JobEntry& entry) {
  const Job& job = entry.view();
  if (entry.reuse.asked || job.table.table.empty() || !WantsReuse(job.spec) || HasTrained(job)) {
    return;
  }
  entry.reuse.asked = true;
  const Window window = WindowOf(entry);
  entry.reuse.answer_by = now_ + kReuseWait;
  if (window.bounded()) {
    entry.reuse.answer_by = std::min(entry.reuse.answer_by, now_ + kReuseShare * window.length());
  }
  turn_.reuses.push_back({job.id, job.spec, job.table.content_sha256});
}

// No fold is started meanwhile.
bool ControlCore::Impl::AwaitsReuse(const JobEntry& entry) const {
  return entry.reuse.asked && !entry.reuse.answered && now_ < entry.reuse.answer_by;
}

void ControlCore::Impl::Handle(Reused& event) {
  JobEntry* found = Find(event.job);
  if (!found || found->reuse.answered) return;
  JobEntry& entry = *found;
  Touch(entry);
  const Job& job = entry.view();
  // Later all is under way without them.
  const bool in_time = AwaitsReuse(entry) && !HasTrained(job) && !IsTerminal(job.state) &&
                       job.state != JobState::kFinalizing;
  entry.reuse.answered = true;
  if (!in_time) return;
  const DecisionRule rule = job.spec.from.empty() ? DecisionRule::kCache : DecisionRule::kFrom;
  if (!event.folds.ok() || event.folds->empty()) {
    if (rule == DecisionRule::kCache) return;  // as for most Jobs
    return Decide(entry, rule,
                  event.folds.ok()
                      ? absl::StrCat("job ", job.spec.from, " has no fold to go on from")
                      : std::string(event.folds.status().message()),
                  absl::StrCat("go on from job ", job.spec.from), "train from the start");
  }
  std::map<std::string, std::vector<std::string>> whole, begun;  // by Job
  for (TrainedFold& fold : *event.folds) {
    const bool asked = fold.fold >= 0 && fold.fold < job.spec.folds && MayHave(job.spec, fold);
    // An extra model that was not trained to the end has its turn when there is time.
    if (!asked || (IsExtra(fold) && !fold.whole)) continue;
    (fold.whole ? whole : begun)[fold.job].push_back(ModelText(fold));
    TakeOver(entry, std::move(fold));
  }
  const std::string same =
      rule == DecisionRule::kCache ? "with the same settings, engine and bytes job " : "job ";
  for (const auto& [source, folds] : whole) {
    Decide(entry, rule,
           absl::StrCat(same, source, " has trained ", FoldsText(folds), " to the end"),
           absl::StrCat("train ", FoldsText(folds)), "take over their predictions");
  }
  for (const auto& [source, folds] : begun) {
    Decide(entry, rule, absl::StrCat(same, source, " has trained a part of ", FoldsText(folds)),
           absl::StrCat("train ", FoldsText(folds), " from the start"),
           "go on from their checkpoints");
  }
  entry.publication.wanted = true;
  entry.pace.replan_wanted = true;
}

void ControlCore::Impl::TakeOver(JobEntry& entry, TrainedFold fold) {
  const int index = FindOrAddTask(entry, fold.fold, fold.trial, fold.seed);
  Job& job = EditDurably(entry);
  Task& task = job.tasks[static_cast<size_t>(index)];
  // A number of its own: what it has is fenced like all else.
  task.attempt = ++last_attempt_;
  turn_.mutations.last_attempt = last_attempt_;
  task.from_job = fold.job;
  task.reused = fold.whole;
  task.epochs_planned = EpochsOf(job.spec, task.trial);
  task.epochs_done = fold.epochs_done;
  task.row_share = fold.row_share;
  if (fold.member) {
    fold.member->attempt = task.attempt;
    fold.member->fold = task.fold;
    fold.member->trial = task.trial;
    fold.member->seed = task.seed;
    fold.member->complete = fold.whole;
    task.score = fold.member->score;
    task.member = std::move(fold.member);
  }
  if (fold.checkpoint) {
    fold.checkpoint->attempt = task.attempt;
    fold.checkpoint->fold = task.fold;
    fold.checkpoint->trial = task.trial;
    fold.checkpoint->seed = task.seed;
    task.epochs_done = fold.checkpoint->epoch;
    turn_.mutations.checkpoints.emplace_back(job.id, *fold.checkpoint);
    task.checkpoint = std::move(fold.checkpoint);
  }
  if (fold.whole) {
    SettleFold(entry, index, absl::StrCat("taken over from job ", fold.job));
  }
}

}  // namespace traind
