// What a fold of a Job costs and takes, by those that were measured and done.
//
// Threads: safe, nothing is kept.
#pragma once

#include <vector>

#include "server/plan/planner.h"

namespace traind {

// The cost that stands for folds of which nothing is known: the median of those
// measured, field by field.
FoldCost TypicalCost(const std::vector<FoldCost>& costs);

// For each fold that runs, in the order given, how many pending ones wait behind it
// when they are dealt to `gangs` gangs, those that are free first.
int FoldsBehind(int position, int running, int pending, int gangs);

// Seconds until that fold's model is trained and predicted, from its start where it waits.
// rows: share of them that an epoch sees.
double SecondsLeft(const PlanInput& in, const FoldView& fold, double epochs, double rows);

// As many epochs as a model is expected to take: where no fold was stopped before it was
// done, those of the one that took longest; else the Plan's.
double EpochsOfTheLongest(const PlanInput& in, int plan_epochs);

// Whether the Plan's models answer at any time without a loss, as boosted trees do: they have no
// schedule that an earlier end would break off.
bool AnswersAtAnyTime(const Spec& spec);

// The epochs that a model takes as a rule, before one was seen: all that the spec asks for, or
// fewer where early stopping comes first.
int UsualEpochs(const Spec& spec);

// What a fold is granted by the same; the Plan's where one of them is at work for longer.
int ExpectedEpochs(const PlanInput& in, int plan_epochs);

}  // namespace traind
