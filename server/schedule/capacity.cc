#include "server/schedule/capacity.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <vector>

namespace traind {
namespace {

// So many kinds of GPUs are told where none suits.
constexpr size_t kGpusTold = 4;

void Count(std::map<Capacity::Kind, int>& kinds, const Capacity::Kind& kind, int change) {
  const auto it = kinds.try_emplace(kind, 0).first;
  it->second += change;
  if (it->second == 0) kinds.erase(it);
}

}  // namespace

Capacity::Kind Capacity::KindOf(const WorkerSlots& worker) {
  Kind kind{worker.own_folder, worker.network, {}, worker.labels};
  for (const WorkerSlots::Slot& slot : worker.slots) ++kind.slots[slot.kind()];
  return kind;
}

void Capacity::Change(const Kind& kind, int change) {
  int slots = 0;
  for (const auto& [device, count] : kind.slots) slots += count;
  slots_ += change * slots;
  Count(kinds_, {kind.own_folder, kind.network, kind.slots, {}}, change);
  for (const std::string& label : kind.labels) {
    Labelled& labelled = labelled_[label];
    Count(labelled.kinds, kind, change);
    labelled.workers += change;
    if (labelled.workers == 0) labelled_.erase(label);
  }
}

void Capacity::Add(const Kind& kind) { Change(kind, 1); }

void Capacity::Remove(const Kind& kind) { Change(kind, -1); }

std::string Capacity::RarestOf(const std::set<std::string>& labels) const {
  const auto workers = [this](const std::string& label) {
    const auto it = labelled_.find(label);
    return it == labelled_.end() ? 0 : it->second.workers;
  };
  const auto rarest = std::min_element(
      labels.begin(), labels.end(),
      [&](const std::string& a, const std::string& b) { return workers(a) < workers(b); });
  return rarest == labels.end() ? "" : *rarest;
}

const Capacity::Kinds& Capacity::KindsFor(const Constraints& asked) const {
  static const Kinds kNone;
  if (asked.labels.empty()) return kinds_;
  const auto it = labelled_.find(RarestOf(asked.labels));
  return it == labelled_.end() ? kNone : it->second.kinds;
}

template <typename Visit>
void Capacity::ForSuiting(const GangShape& shape, bool in_shared_folders, Visit visit) const {
  for (const auto& [kind, workers] : KindsFor(shape.constraints)) {
    if (kind.own_folder && in_shared_folders) continue;
    if (!HasLabels(kind.labels, shape.constraints)) continue;
    std::map<std::string, int> devices;
    for (const auto& [device, count] : kind.slots) {
      if (SuitsSlot(shape, device)) devices[device.device] += count;
    }
    for (const auto& [device, slots] : devices) {
      visit(workers, slots, std::make_pair(kind.network, device));
    }
  }
}

int Capacity::CountGangs(const GangShape& shape, bool may_span, bool in_shared_folders) const {
  const int size = std::max(shape.slots, 1);
  int gangs = 0;
  std::map<std::pair<std::string, std::string>, int> pools;
  ForSuiting(shape, in_shared_folders, [&](int workers, int slots, const auto& pool) {
    gangs += workers * (slots / size);
    if (may_span && !pool.first.empty()) pools[pool] += workers * slots;
  });
  // A gang spans Workers only where none could hold it.
  if (gangs > 0 || !may_span) return gangs;
  for (const auto& [pool, slots] : pools) gangs += slots / size;
  return gangs;
}

int Capacity::LargestGang(const GangShape& shape, bool may_span) const {
  int largest = 0;
  std::map<std::pair<std::string, std::string>, int> pools;
  ForSuiting(shape, /*in_shared_folders=*/false, [&](int workers, int slots, const auto& pool) {
    largest = std::max(largest, slots);
    if (may_span && !pool.first.empty()) {
      largest = std::max(largest, pools[pool] += workers * slots);
    }
  });
  return largest;
}

std::string Capacity::WhatIsMissing(const GangShape& shape) const {
  const Constraints& asked = shape.constraints;
  for (const std::string& label : asked.labels) {
    if (labelled_.count(label) == 0) return absl::StrCat("no Worker has label ", label);
  }
  bool labelled = false;
  std::set<std::string> gpus;
  for (const auto& [kind, workers] : KindsFor(asked)) {
    if (!HasLabels(kind.labels, asked)) continue;
    labelled = true;
    for (const auto& [device, count] : kind.slots) {
      if (SuitsSlot(shape, device)) return "";
      if (!device.gpu.empty()) {
        gpus.insert(absl::StrCat(device.gpu, " of ", device.memory_bytes >> 20, " MiB"));
      }
    }
  }
  const std::string labels = absl::StrJoin(asked.labels, " and ");
  if (!labelled && !labels.empty()) return absl::StrCat("no Worker has labels ", labels);
  if (!asked.of_gpu()) return "";
  std::string text = labels.empty() ? "no GPU" : absl::StrCat("no GPU of a Worker with ", labels);
  absl::StrAppend(&text, " is");
  if (!asked.gpu.empty()) absl::StrAppend(&text, " named ", asked.gpu);
  if (asked.gpu_memory_bytes > 0) {
    absl::StrAppend(&text, asked.gpu.empty() ? " of " : " with ", asked.gpu_memory_bytes >> 20,
                    " MiB");
  }
  std::vector<std::string> told(gpus.begin(), gpus.end());
  if (told.size() > kGpusTold) told.resize(kGpusTold);
  if (!told.empty()) absl::StrAppend(&text, "; there is ", absl::StrJoin(told, ", "));
  return text;
}

}  // namespace traind
