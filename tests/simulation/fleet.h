// The Workers of a simulation and what Jobs ask of them: racks and other labels, GPUs of several
// models, gangs larger than a Worker, classes.
// Threads: plain values; the same chances give the same fleet.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "server/domain/job.h"
#include "tests/simulation/truth.h"
#include "tests/simulation/world.h"

namespace traind::simulation {

struct FleetWorker {
  std::vector<Slot> slots;  // of one device
  std::set<std::string> labels = {};
  bool reachable = false;  // a gang may span it and others
};
using Fleet = std::vector<FleetWorker>;

// Slots of the CPU, without labels.
FleetWorker PlainWorker(int slots, bool reachable);
// Two to five Workers in racks, some of them with GPUs.
Fleet MakeFleet(Chance& chance);

// Makes a Job ask for what some Worker has, for what nobody has, or for more slots than one has;
// and gives it a class, which is higher for later Jobs in most cases.
void AskOfFleet(const Fleet& fleet, int place, JobTruth& truth, Chance& chance);

// How many gangs the whole fleet holds.
int CountGangs(const Fleet& fleet, const Spec& spec);
std::vector<int> SlotCounts(const Fleet& fleet);

// For the checker, which knows a GPU by the words of its name and by the size it is sold as.
nlohmann::json Described(const FleetWorker& worker);
nlohmann::json Described(const Spec& spec);

}  // namespace traind::simulation
