// The machines of a history and what its Jobs ask of them, as the checker understands both.
// Threads: safe, pure.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace traind::simulation {

struct Machine {
  struct Slot {
    std::set<std::string> words;  // of a GPU's name
    int gb = 0;                   // as it is sold
  };
  std::set<std::string> labels;
  std::string device;  // empty: nothing is known of it
  bool reachable = false;
  std::vector<Slot> slots;

  std::string rack() const;  // empty: it stands in none
};

// What a Job asks for.
struct Demand {
  std::set<std::string> labels;
  std::string device, gpu;
  int gpu_gb = 0;
  int slots = 1;
  bool may_span = false;  // over Workers, where none suffices

  bool any() const { return !labels.empty() || !device.empty() || !gpu.empty() || gpu_gb > 0; }
};

Machine MachineOf(const nlohmann::json& record);
Demand DemandOf(const nlohmann::json& asks, int slots);

// Why a gang with that demand may not have these slots; empty: it may. What is not known suits.
std::string WhyNot(const Demand& demand, const Machine& machine, const std::vector<int>& slots);
// The slots of a machine that suit, whether they are free or not.
std::vector<int> Suiting(const Demand& demand, const Machine& machine);
// What a Job has to be told where no machine meets its demand: one of these texts is part of it.
std::vector<std::string> WhatIsTold(const Demand& demand,
                                    const std::map<std::string, Machine>& machines);

// Slots by machine.
using Room = std::map<std::string, std::vector<int>>;
// How many machines a gang needs of such a room; 0: it has no room there.
int LeastMachines(const Room& room, int slots);

}  // namespace traind::simulation
