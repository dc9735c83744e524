// What a seed has chosen: how Jobs behave, and which faults there are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/domain/job.h"
#include "tests/simulation/world.h"

namespace traind::simulation {

// The truth about a Job, which traind has to find out.
struct JobTruth {
  std::string request;
  Spec spec;
  double read_s = 0.1;   // PREPARE until the table is there
  double floor_s = 0.1;  // and until the better floor is
  bool bad_data = false;
  double start_s = 0.1;  // a Rank's, before its first step
  double step_s = 0.01;
  int64_t steps = 50;  // per epoch
  double evaluate_s = 0.01;
  double predict_s = 0.05;
  double probe_error = 1;             // what the probe says, over the truth
  int early_stop = 0;                 // patience runs out after so many epochs; 0: never
  double saves = 0;                   // chance of predictions from a running fold, per epoch
  double skill = 1;                   // the score after many epochs
  double idle_s = 1;                  // after which a Rank that serves goes
  std::vector<JobTruth> trials = {};  // of the trials above 0
};

// Where and when a Job is submitted.
struct Setting {
  std::vector<int> slots;  // by Worker
  bool spanned = false;    // gangs may span Workers
  absl::Time now;
};
JobTruth MakeTruth(const std::string& request, const Setting& setting, Chance& chance);

// The faults that a seed may bring.
struct Faults {
  double rank_dies = 0;  // chances per Attempt
  double rank_hangs = 0;
  double diverges = 0;
  double damaged = 0;      // chance that a checkpoint cannot be read
  double worker_dies = 0;  // per 10 s
  double worker_returns = 1;
  double link_breaks = 0;       // per 10 s
  double half_open = 0;         // chance that traind does not see a break
  double partitions = 0;        // chance that a break lasts longer than a lease
  double coordinator_dies = 0;  // per 10 s
  double crash_in_turn = 0;     // per turn
  double disk_full = 0;         // per 10 s
  double wall_jumps = 0;        // per 10 s
  double duplicates = 0;        // facts sent twice
  double power_fails = 0;       // per 10 s
  bool heavy_tails = false;
  bool any() const {
    return rank_dies + rank_hangs + diverges + damaged + worker_dies + link_breaks +
               coordinator_dies + crash_in_turn + disk_full + wall_jumps + duplicates +
               power_fails >
           0;
  }
};

// standalone: whether there is one Worker, which lives with traind; some faults are of clusters.
Faults DrawFaults(Chance& chance, bool& standalone);

}  // namespace traind::simulation
