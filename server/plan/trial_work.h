// How much longer a trial's settings train than others of the same kind, before one was measured.
//
// Threads: safe, nothing is kept.
#pragma once

#include <absl/strings/string_view.h>

#include <vector>

#include "proto/plain/job.h"

namespace traind {

// The work of a fold beside one with usual settings of the same kind: 100 rounds of trees with 31
// leaves (depth 6), or a plain network. Trees need about 10 / learning_rate rounds. A network of
// several members, or with embedded numbers, has no hand-written pass and takes eight times as long
// (docs/BENCHMARKS.md). 1 for other kinds.
double WorkOfModel(const plain::ModelSpec& model);

// Returns the work of each trial that a stored spec names; empty: it names none.
std::vector<double> WorkOfTrials(absl::string_view spec_json);

}  // namespace traind
