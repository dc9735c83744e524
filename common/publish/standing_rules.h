// Which saved predictions of a model answer, how good an answer is, and whether it replaces the
// standing Prediction. The publisher decides by these on files, the simulator on a simulated disk.
// Threads: safe, pure.
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "common/publish/prediction.h"

namespace traind {

// Whether `a` is taken before `b`, where both are of one model and usable: a complete one before an
// incomplete one, then the newest Attempt, then the one that trained longest.
bool TakenBefore(const Member& a, const Member& b);

// Returns how much of the spec an answer stands for. members: of the answer; none: the floor
// answers. complete: folds whose first model of trial 0 is complete.
Quality QualityOf(const PublishRequest& request, size_t members, int complete);

// Counts the folds that answer and whose first model of trial 0 is complete, whether that model has
// a weight or not. idle: usable models without a weight.
int CompleteFolds(const std::vector<Member>& answering, const std::vector<Member>& idle);

// An answer that is made, but does not stand yet.
struct NextStanding {
  const PublishedPrediction* prediction = nullptr;
  std::set<int> folds;  // that answer
  int complete = 0;     // as CompleteFolds counts them
  bool trials = false;  // models of several trials were weighed
};

// Whether `next` replaces the standing Prediction, whose models without a weight are `idle`. The
// scores are asked for only where they decide: better_floor, whether `next` is another floor than
// the standing one and better; not_worse, whether `next` scores at least as well on the rows that
// both cover.
bool Replaces(const NextStanding& next, const PublishedPrediction& standing,
              const std::vector<Member>& idle, const std::function<bool()>& better_floor,
              const std::function<bool()>& not_worse);

}  // namespace traind
