// Rules of boosted trees, of model.automatic and of quantiles, and the type of a task that names
// none.
//
// Threads: all functions are safe.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "proto/job.pb.h"

namespace traind {

// A task.type and why it is that.
struct TypeChoice {
  std::string type;     // empty: it is not known
  std::string because;  // "data.horizon is set"; empty where the spec names the type
};

// The type of the task as far as the spec itself tells it. Where it does not, the target's values
// do.
TypeChoice TypeOfSpec(const v1::JobSpec& spec);

// Tells of each mistake: the field's path, and what is wrong with it.
// type: that of the task; empty: not known.
void CheckAutomatic(const v1::JobSpec& spec, const std::string& type,
                    const std::function<void(const std::string&, const std::string&)>& add);

void CheckKnownAhead(const v1::JobSpec& spec, const std::string& type,
                     const std::function<void(const std::string&, const std::string&)>& add);
void CheckQuantiles(const v1::PredictionsSpec& predictions, const std::string& type,
                    const std::function<void(const std::string&, const std::string&)>& add);

// The kinds that model.automatic may try: those that the spec names, or else all that fit the task.
std::vector<std::string> KindsToTry(const v1::JobSpec& spec);

// Whether a random forest may be among them: it learns the loss.
bool MayTryForest(const v1::JobSpec& spec);

// Where the spec names no model: model.automatic for a classification or regression of a plain
// table with one target, on CPUs, one slot a fold; else the network for what the rows have
// (DefaultNetwork). A search varies one kind: the one that its space names, else lightgbm in place
// of model.automatic.
void ChooseModel(v1::JobSpec& spec);

// The epochs that a resolved spec asks for in each fold: those that the Plan is made for, which of
// several trials are the first one's.
int EpochsAsked(const v1::JobSpec& resolved);

}  // namespace traind
