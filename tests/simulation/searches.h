// Jobs that search, and clients that propose their trials.
#pragma once

#include <absl/time/time.h>

#include <memory>
#include <string>
#include <vector>

#include "server/domain/spec.h"
#include "tests/simulation/world.h"

namespace traind::simulation {

// Makes the trials of a spec those of a search: of one kind, with settings that are drawn before or
// on the way, or proposed.
void AddSearch(Spec& spec, Chance& chance);

struct Proposal {
  absl::Duration after;  // since the Job was submitted
  std::string request_id;
  std::shared_ptr<const Settings> settings;
};

// The proposals of a client for that Job, some of them twice; none where nobody asks for them.
std::vector<Proposal> ProposalsFor(const Spec& spec, double window, Chance& chance);

}  // namespace traind::simulation
