#include "tests/simulation/fleet.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <iterator>
#include <map>

namespace traind::simulation {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30, kMiB = int64_t{1} << 20;

struct GpuModel {
  const char* name;
  std::vector<std::string> words;
  int gb;           // as it is sold
  int64_t told_mb;  // as its driver tells
};

// One name begins as another does, and one is as large as another.
const std::vector<GpuModel>& Models() {
  static const std::vector<GpuModel> models = {
      {"NVIDIA A10", {"nvidia", "a10"}, 24, 23'028},
      {"NVIDIA A100-SXM4-80GB", {"nvidia", "a100"}, 80, 81'559},
      {"NVIDIA H100 80GB HBM3", {"nvidia", "h100"}, 80, 81'559},
      {"Tesla T4", {"tesla", "t4"}, 16, 15'360},
  };
  return models;
}

const GpuModel& AnyModel(Chance& chance) {
  return Models()[static_cast<size_t>(chance.Int(0, static_cast<int>(Models().size()) - 1))];
}

const GpuModel& ModelOf(const Slot& slot) {
  return *std::find_if(Models().begin(), Models().end(),
                       [&slot](const GpuModel& model) { return slot.name == model.name; });
}

bool Suits(const Slot& slot, const Spec& spec) {
  if (!spec.device.empty() && slot.device != spec.device) return false;
  const Constraints& asked = spec.constraints;
  if (!asked.of_gpu()) return true;
  if (slot.device != "cuda") return false;
  const GpuModel& model = ModelOf(slot);
  const bool named = asked.gpu.empty() || std::find(model.words.begin(), model.words.end(),
                                                    asked.gpu) != model.words.end();
  return named && model.gb * kGiB >= asked.gpu_memory_bytes;
}

int Suiting(const FleetWorker& worker, const Spec& spec) {
  const std::set<std::string>& labels = spec.constraints.labels;
  if (!std::includes(worker.labels.begin(), worker.labels.end(), labels.begin(), labels.end())) {
    return 0;
  }
  return static_cast<int>(std::count_if(worker.slots.begin(), worker.slots.end(),
                                        [&spec](const Slot& slot) { return Suits(slot, spec); }));
}

// Trees and programs have no gangs that span Workers.
bool MaySpan(const Spec& spec) {
  return std::all_of(spec.trials.begin(), spec.trials.end(),
                     [](const Trial& trial) { return trial.kind == "mlp"; });
}

std::vector<Slot> GpuSlots(int count, Chance& chance) {
  const GpuModel first = AnyModel(chance);
  const bool mixed = chance.Happens(0.3);
  std::vector<Slot> slots;
  for (int i = 0; i < count; ++i) {
    const GpuModel& model = mixed ? AnyModel(chance) : first;
    slots.push_back({i, "cuda", model.name, absl::StrCat("GPU-", i), model.told_mb * kMiB});
  }
  return slots;
}

const FleetWorker& AnyWorker(const Fleet& fleet, Chance& chance) {
  return fleet[static_cast<size_t>(chance.Int(0, static_cast<int>(fleet.size()) - 1))];
}

std::set<std::string> SomeOf(const std::set<std::string>& labels, Chance& chance) {
  std::set<std::string> some;
  for (const std::string& label : labels) {
    if (chance.Happens(0.5)) some.insert(label);
  }
  return some;
}

void AskForLabels(const Fleet& fleet, Spec& spec, Chance& chance) {
  std::set<std::string>& labels = spec.constraints.labels;
  labels = SomeOf(AnyWorker(fleet, chance).labels, chance);
  // Perhaps nobody has the labels of two Workers, and nobody has the last one.
  if (chance.Happens(0.15)) labels.merge(SomeOf(AnyWorker(fleet, chance).labels, chance));
  if (chance.Happens(0.1)) labels.insert("rack=z");
}

void AskForGpus(const Fleet& fleet, Spec& spec, Chance& chance) {
  const FleetWorker& worker = AnyWorker(fleet, chance);
  spec.device = worker.slots[0].device;
  if (spec.device == "cpu" && chance.Happens(0.9)) return;
  const bool there = spec.device == "cuda" && chance.Happens(0.9);
  const GpuModel& model = there ? ModelOf(worker.slots.back()) : AnyModel(chance);
  spec.device = "cuda";
  if (chance.Happens(0.6)) spec.constraints.gpu = model.words[chance.Happens(0.8) ? 1 : 0];
  if (chance.Happens(0.4)) spec.constraints.gpu_memory_bytes = model.gb * kGiB;
}

void AskForSlots(const Fleet& fleet, JobTruth& truth, Chance& chance) {
  Spec& spec = truth.spec;
  int most = 0, reachable = 0;
  for (const FleetWorker& worker : fleet) {
    most = std::max(most, Suiting(worker, spec));
    reachable += worker.reachable ? Suiting(worker, spec) : 0;
  }
  spec.slots = 1;
  if (chance.Happens(0.25)) spec.slots = chance.Int(1, std::max(1, most));
  if (chance.Happens(0.35) && reachable > most) spec.slots = chance.Int(most + 1, reachable);
  if (spec.slots > most) {
    for (Trial& trial : spec.trials) trial.kind = "mlp";
  }
  for (JobTruth& trial : truth.trials) trial.spec.slots = spec.slots;
}

}  // namespace

FleetWorker PlainWorker(int slots, bool reachable) {
  FleetWorker worker;
  for (int slot = 0; slot < slots; ++slot) {
    worker.slots.push_back({slot, "cpu", "", "", kGiB});
  }
  worker.reachable = reachable;
  return worker;
}

Fleet MakeFleet(Chance& chance) {
  static const char* const kRacks[] = {"rack=a", "rack=b", "rack=c"};
  Fleet fleet;
  const int workers = chance.Int(2, 5), racks = chance.Int(1, 3);
  const bool gpus = chance.Happens(0.5);
  for (int i = 0; i < workers; ++i) {
    FleetWorker worker = PlainWorker(chance.Int(1, 3), chance.Happens(0.9));
    if (gpus && chance.Happens(0.7)) {
      worker.slots = GpuSlots(static_cast<int>(worker.slots.size()), chance);
    }
    if (chance.Happens(0.9)) worker.labels.insert(kRacks[chance.Int(0, racks - 1)]);
    if (chance.Happens(0.4)) worker.labels.insert(chance.Happens(0.5) ? "zone=x" : "zone=y");
    if (chance.Happens(0.3)) worker.labels.insert("disk=nvme");
    fleet.push_back(std::move(worker));
  }
  return fleet;
}

void AskOfFleet(const Fleet& fleet, int place, JobTruth& truth, Chance& chance) {
  Spec& spec = truth.spec;
  if (chance.Happens(0.45)) AskForLabels(fleet, spec, chance);
  const bool gpus = std::any_of(fleet.begin(), fleet.end(), [](const FleetWorker& worker) {
    return worker.slots[0].device == "cuda";
  });
  if (chance.Happens(gpus ? 0.5 : 0.02)) AskForGpus(fleet, spec, chance);
  AskForSlots(fleet, truth, chance);
  spec.priority = chance.Happens(0.7) ? place + chance.Int(-1, 1) : chance.Int(-2, 3);
}

int CountGangs(const Fleet& fleet, const Spec& spec) {
  int gangs = 0;
  std::map<std::string, int> reachable;  // slots, by device
  for (const FleetWorker& worker : fleet) {
    const int suiting = Suiting(worker, spec);
    gangs += suiting / spec.slots;
    if (worker.reachable) reachable[worker.slots[0].device] += suiting;
  }
  if (gangs > 0 || !MaySpan(spec)) return gangs;
  for (const auto& [device, slots] : reachable) gangs += slots / spec.slots;
  return gangs;
}

std::vector<int> SlotCounts(const Fleet& fleet) {
  std::vector<int> counts;
  for (const FleetWorker& worker : fleet) counts.push_back(static_cast<int>(worker.slots.size()));
  return counts;
}

nlohmann::json Described(const FleetWorker& worker) {
  nlohmann::json slots = nlohmann::json::array();  // [words of its name, GB]; none of a CPU's
  for (const Slot& slot : worker.slots) {
    if (slot.device == "cpu") {
      slots.push_back({nlohmann::json::array(), 0});
    } else {
      slots.push_back({ModelOf(slot).words, ModelOf(slot).gb});
    }
  }
  return {{"labels", worker.labels},
          {"reachable", worker.reachable},
          {"device", worker.slots[0].device},
          {"slots", std::move(slots)}};
}

nlohmann::json Described(const Spec& spec) {
  const Constraints& asked = spec.constraints;
  return {{"labels", asked.labels},
          {"may_span", MaySpan(spec)},
          {"device", spec.device},
          {"gpu", asked.gpu},
          {"gpu_gb", asked.gpu_memory_bytes / kGiB}};
}

}  // namespace traind::simulation
