// The trials of model.automatic: settings of several kinds of models that are good without search,
// in the order in which they are tried.
//
// Threads: safe, nothing is kept.
#pragma once

#include <vector>

#include "proto/job.pb.h"

namespace traind {

// Facts about a table before it is read; 0: not known.
struct TableHint {
  double rows = 0;
  int features = 0;  // columns that a model may read
  int classes = 0;
  bool counts = false;    // the target looks like counts of events
  bool skewed = false;    // one of the target's tails is much longer than the other
  bool positive = false;  // all its values that are known are above 0
};

// Returns the trials of a resolved spec with model.automatic, at most as many as it allows. The
// first is the quickest that is good; the next ones differ from it and from each other as much as
// good settings can, because an ensemble gains from that; the last ones are drawn at random from
// data.seed. asked: the `train` of the spec as the user wrote it, which goes before the portfolio's
// own settings of networks. Equal arguments give equal trials, and more trials begin with those of
// fewer.
std::vector<v1::TrialSpec> MakePortfolio(const v1::JobSpec& resolved, const v1::TrainSpec& asked,
                                         const TableHint& table);

}  // namespace traind
