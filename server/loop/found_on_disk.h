// What lies in the state folder, because Workers and Ranks have gone on while nobody heard them.
#pragma once

#include <string>
#include <vector>

#include "server/control/events.h"

namespace traind {

// Adds the Job's Prediction that stands, if there is one.
void AddStanding(const std::string& state_dir, const std::string& job, std::vector<Event>* events);

// Adds, for each Attempt that trains a fold of the Job, its newest sound checkpoint that traind has
// not heard of.
void AddCheckpoints(const std::string& state_dir, const Job& job, std::vector<Event>* events);

}  // namespace traind
