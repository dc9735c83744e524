// Tells waiting Jobs what they lack, their place in the line, and when they may start.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <map>

#include "server/control/control_core_impl.h"
#include "server/domain/names.h"

namespace traind {
namespace {

// Every turn with something to store looks at a line of so many Jobs, while few Attempts run; else
// one in kWalkInterval does.
constexpr size_t kShortLine = 64;
// At most so many Jobs are told, and fewer where there are many slots to be looked at for each.
constexpr size_t kMostTold = 256;
constexpr size_t kMostSlotsSeen = 20'000;
// A start that moves by less is not told again.
constexpr absl::Duration kLeastMove = absl::Seconds(5);

std::string WantedText(const GangShape& shape) {
  const char* unit = shape.device == "cuda" ? " GPU" : " slot";
  return absl::StrCat(shape.slots, unit, shape.slots == 1 ? "" : "s");
}

std::string SlotsText(const GangShape& shape, const Outlook& outlook) {
  std::string text = WantedText(shape);
  if (shape.slots > 1 && outlook.one_worker) absl::StrAppend(&text, " on one host");
  absl::StrAppend(&text, "; ", outlook.free, " free");
  if (outlook.kept > 0 && outlook.free >= shape.slots) {
    absl::StrAppend(&text, ", kept for a gang");
  }
  return text;
}

}  // namespace

bool ControlCore::Impl::NotesDue() const {
  if (touched_.empty()) return false;
  size_t waiting = 0;
  for (const auto& [key, queue] : train_queue_) waiting += queue.size();
  // Live figures alone tell little that is new, and come often.
  const bool news = std::any_of(touched_.begin(), touched_.end(),
                                [](const JobEntry* entry) { return entry->stored; });
  const bool small = waiting <= kShortLine && attempts_.size() <= kFewAttempts;
  return (small && news) || now_ - noted_at_ >= kWalkInterval;
}

void ControlCore::Impl::TellWait(JobEntry& entry, std::string text, absl::Time start) {
  const absl::Time told = entry.view().expected_start;
  const absl::Duration moved = start > told ? start - told : told - start;
  const absl::Duration least = std::max(kLeastMove, 0.1 * (std::min(start, told) - now_));
  const bool known = start != absl::InfiniteFuture(), was = told != absl::InfiniteFuture();
  const bool same = known == was && (!known || moved < least);
  if (same && text == entry.view().waits_for) return;
  Job& job = EditLive(entry);
  job.waits_for = std::move(text);
  if (!same) job.expected_start = start;
}

std::string ControlCore::Impl::WaitText(const JobEntry& entry, const GangShape& shape,
                                        const Outlook& outlook) const {
  const std::string missing = board_.capacity().WhatIsMissing(shape);
  if (!missing.empty()) return missing;
  const std::string preempted = PreemptedText(entry.view());
  return absl::StrCat(SlotsText(shape, outlook), preempted.empty() ? "" : "; ", preempted);
}

std::string ControlCore::Impl::HeldBackText(const JobEntry& entry) const {
  const std::string& owner = entry.view().owner;
  return absl::StrCat(WantedText(entry.shape), "; ", limits_.SlotsText(owner),
                      IsHeldBack(entry) ? "" : ", and its other Jobs go first");
}

void ControlCore::Impl::NoteWaits() {
  noted_at_ = now_;
  const auto slots = static_cast<size_t>(1 + board_.capacity().slots());
  const size_t most = std::clamp<size_t>(kMostSlotsSeen / slots, 1, kMostTold);
  std::vector<std::pair<Candidate, JobEntry*>> in_order;
  std::vector<JobEntry*> held;
  for (auto first = train_queue_.cbegin(); first != train_queue_.cend(); first = SkipShape(first)) {
    int place = 0;
    for (JobEntry* entry : NextInLine(first, most)) {
      if (entry->place != ++place) EditLive(*entry);
      entry->place = place;
      in_order.emplace_back(MakeCandidate(*entry, 1, /*timed=*/true), entry);
    }
    for (JobEntry* entry : HeldBack(first, most - std::min(most, held.size()))) {
      const int behind = PlaceOf(*entry);
      if (entry->place != behind) EditLive(*entry);
      entry->place = behind;
      // What no Worker can run is told as that, whatever its owner has.
      if (GangsOfMachines(*entry) > 0) {
        held.push_back(entry);
      } else {
        in_order.emplace_back(MakeCandidate(*entry, 1, /*timed=*/true), entry);
      }
    }
  }
  std::stable_sort(in_order.begin(), in_order.end(),
                   [](const auto& a, const auto& b) { return a.first.urgency < b.first.urgency; });
  if (in_order.size() > most) in_order.resize(most);
  std::vector<Candidate> line;
  std::vector<JobEntry*> entries;
  std::map<std::string, int> left;  // that owners may take
  for (const auto& [candidate, entry] : in_order) {
    int& owners = left.try_emplace(candidate.owner, candidate.slots_left).first->second;
    owners -= candidate.shape.slots;
    if (owners < 0 && GangsOfMachines(*entry) > 0) {
      held.push_back(entry);
      continue;
    }
    line.push_back(candidate);
    entries.push_back(entry);
  }
  for (JobEntry* entry : held) {
    const PendingReason why = WhyPending(*entry, entry->place);
    const bool told = why == PendingReason::kQuota ? IsHeldBack(*entry) : LacksSlots(why);
    if (told) TellWait(*entry, HeldBackText(*entry), absl::InfiniteFuture());
  }
  const std::vector<Outlook> outlooks = LookAhead(line, now_, board_);
  line_.clear();
  for (size_t i = 0; i < line.size(); ++i) {
    line_.emplace_back(line[i].urgency, outlooks[i].start);
    JobEntry& entry = *entries[i];
    if (!LacksSlots(WhyPending(entry, entry.place))) continue;
    TellWait(entry, WaitText(entry, line[i].shape, outlooks[i]), outlooks[i].start);
  }
}

void ControlCore::Impl::NotePrepareWaits() {
  const bool due =
      prepare_queue_.size() <= kShortLine || now_ - prepares_noted_at_ >= kWalkInterval;
  if (touched_.empty() || !due) return;
  prepares_noted_at_ = now_;
  size_t told = 0;
  for (const auto& [urgency, entry] : prepare_queue_) {
    if (++told > kShortLine) return;
    const bool open = !NobodyIsIdle();
    const bool attached = open || std::any_of(workers_.begin(), workers_.end(),
                                              [](const auto& w) { return w.second.attached; });
    const char* text = open       ? "a Worker that reads its data; all of them have enough to read"
                       : attached ? "a Worker; those that are attached take nothing new"
                                  : "a Worker; none is attached";
    TellWait(*entry, text, absl::InfiniteFuture());
  }
}

// Says at once where a deadline leaves no time for a fold beside the Jobs that were accepted
// before.
void ControlCore::Impl::NoteLateStart(JobEntry& entry) {
  const Job& job = entry.view();
  if (line_.empty() || job.deadline == absl::InfiniteFuture()) return;
  Urgency urgency;
  urgency.latest_start = job.deadline;
  urgency.priority = job.spec.priority;
  urgency.accepted_at = job.accepted_at;
  urgency.sequence = entry.sequence;
  auto next = std::upper_bound(line_.begin(), line_.end(), urgency,
                               [](const Urgency& u, const auto& other) { return u < other.first; });
  if (next == line_.end()) --next;
  const absl::Time start = next->second, end = TrainEndOf(entry);
  if (start == absl::InfiniteFuture() || start <= end) return;
  EditDurably(entry).warnings.push_back(
      absl::StrCat("deadline: the jobs accepted before it use the slots for another ",
                   Text(start - now_), ", and its folds have to end within ", Text(end - now_),
                   "; unless slots are free earlier, its answer is that of the floor"));
}

}  // namespace traind
