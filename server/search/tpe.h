// The tree-structured Parzen estimator (Bergstra, Bardenet, Bengio, Kegl 2011; multivariate as in
// Falkner, Klein, Hutter 2018), with the constants of Optuna 5: of n trials the best min(n / 10,
// 25) are good; of 24 draws from the density of the good ones the one is taken whose ratio to the
// density of the others is largest. A trial is a kernel over all parameters. In each parameter it
// is as wide as the larger gap to its neighbours, but at least range / min(100, n + 2). One more
// kernel, over the whole space, stands for what is known before any trial.
//
// Threads: safe, nothing is kept. Equal arguments give equal settings.
#pragma once

#include <vector>

#include "common/search/draw.h"
#include "common/search/range.h"
#include "server/domain/spec.h"

namespace traind {

// A trial that has begun. One that still runs counts among the bad ones, so that others that begin
// now differ from it.
struct Tried {
  Settings settings;
  double loss = 0;  // less is better; infinite: it failed
  bool running = false;
};

// tried: in the order in which the trials began; those that lack a parameter do not count.
Settings DrawByTpe(const Space& space, const std::vector<Tried>& tried, Draw& draw);

}  // namespace traind
