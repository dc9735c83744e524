#include "tests/simulation/places.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <functional>

namespace traind::simulation {
namespace {

constexpr char kRack[] = "rack=";

bool HasLabels(const Demand& demand, const Machine& machine) {
  return std::all_of(demand.labels.begin(), demand.labels.end(),
                     [&](const std::string& label) { return machine.labels.count(label) > 0; });
}

bool SuitsSlot(const Demand& demand, const Machine& machine, size_t slot) {
  if (!demand.device.empty() && demand.device != machine.device) return false;
  if (demand.gpu.empty() && demand.gpu_gb == 0) return true;
  const Machine::Slot& gpu = machine.slots[slot];
  return gpu.gb > 0 && gpu.gb >= demand.gpu_gb &&
         (demand.gpu.empty() || gpu.words.count(demand.gpu) > 0);
}

}  // namespace

std::string Machine::rack() const {
  for (const std::string& label : labels) {
    if (absl::StartsWith(label, kRack)) return label;
  }
  return "";
}

Machine MachineOf(const nlohmann::json& record) {
  Machine machine;
  machine.labels = record["labels"].get<std::set<std::string>>();
  machine.device = record["device"];
  machine.reachable = record["reachable"];
  for (const nlohmann::json& slot : record["slots"]) {
    machine.slots.push_back({slot[0].get<std::set<std::string>>(), slot[1]});
  }
  return machine;
}

Demand DemandOf(const nlohmann::json& asks, int slots) {
  return {asks["labels"].get<std::set<std::string>>(),
          asks["device"],
          asks["gpu"],
          asks["gpu_gb"],
          slots,
          asks["may_span"]};
}

std::string WhyNot(const Demand& demand, const Machine& machine, const std::vector<int>& slots) {
  if (machine.device.empty()) return "";
  for (const std::string& label : demand.labels) {
    if (machine.labels.count(label) == 0) return absl::StrCat("which lacks the label ", label);
  }
  std::set<int> seen;
  for (const int slot : slots) {
    if (!seen.insert(slot).second) return absl::StrCat("which gives its slot ", slot, " twice");
    if (slot < 0 || static_cast<size_t>(slot) >= machine.slots.size()) {
      return absl::StrCat("which has no slot ", slot);
    }
    if (!SuitsSlot(demand, machine, static_cast<size_t>(slot))) {
      return absl::StrCat("whose slot ", slot, " is not what it asks for");
    }
  }
  return "";
}

std::vector<int> Suiting(const Demand& demand, const Machine& machine) {
  std::vector<int> slots;
  if (!HasLabels(demand, machine)) return slots;
  for (size_t i = 0; i < machine.slots.size(); ++i) {
    if (SuitsSlot(demand, machine, i)) slots.push_back(static_cast<int>(i));
  }
  return slots;
}

std::vector<std::string> WhatIsTold(const Demand& demand,
                                    const std::map<std::string, Machine>& machines) {
  const auto any = [&machines](const std::function<bool(const Machine&)>& has) {
    return std::any_of(machines.begin(), machines.end(),
                       [&has](const auto& known) { return has(known.second); });
  };
  std::vector<std::string> told;
  for (const std::string& label : demand.labels) {
    if (!any([&](const Machine& machine) { return machine.labels.count(label) > 0; })) {
      told.push_back(absl::StrCat("no Worker has label ", label));
    }
  }
  if (!told.empty()) return told;
  if (!any([&](const Machine& machine) { return HasLabels(demand, machine); })) {
    return {"no Worker has labels "};
  }
  const bool of_gpu = !demand.gpu.empty() || demand.gpu_gb > 0;
  if (of_gpu && !any([&](const Machine& machine) { return !Suiting(demand, machine).empty(); })) {
    return {"no GPU "};
  }
  return {absl::StrCat(demand.slots, demand.device == "cuda" ? " GPU" : " slot")};
}

int LeastMachines(const Room& room, int slots) {
  std::vector<int> sizes;
  for (const auto& [machine, free] : room) sizes.push_back(static_cast<int>(free.size()));
  std::sort(sizes.rbegin(), sizes.rend());
  int machines = 0;
  for (const int size : sizes) {
    ++machines;
    slots -= size;
    if (slots <= 0) return machines;
  }
  return 0;
}

}  // namespace traind::simulation
