// The trials of a Job as people read them.
#pragma once

#include <absl/strings/string_view.h>

#include <optional>
#include <string>
#include <vector>

#include "proto/job.pb.h"
#include "server/domain/job.h"

namespace traind {

// Returns the trials of a Job, with the settings that tell them apart and what their folds have
// shown. Empty: there is one setting, or the spec cannot be read. Threads: safe.
std::vector<v1::Trial> TrialsOf(const Job& job);

// Returns the fields that a search varies, with what it has shown. Unset: the Job does not search.
std::optional<v1::Search> SearchOf(const Job& job);

// The name of a searched field that people read: "num_leaves" of "model.lightgbm.num_leaves", "lr"
// of "model.command.settings.lr". Other paths stay.
std::string ShortName(absl::string_view path, const std::string& kind);

// The spec that a Worker gets for a trial: of a search it has the trial's settings.
std::string SpecForTrial(const Job& job, int trial);

}  // namespace traind
