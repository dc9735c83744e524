// Draws the settings of a search's trials without looking at others.
//
// Threads: safe, nothing is kept. Equal arguments give equal settings.
#pragma once

#include <cstdint>
#include <vector>

#include "common/search/draw.h"
#include "common/search/range.h"
#include "server/domain/spec.h"

namespace traind {

// The numbers of one trial's draw. attempt: above 0 where the settings drawn before are taken.
Draw DrawOf(uint64_t seed, int trial, int attempt);

Settings DrawRandom(const Space& space, Draw& draw);

// All points, in an order that the seed chooses; at most so many.
// REQUIRES: the space has finitely many points, which an int can count.
std::vector<Settings> GridPoints(const Space& space, uint64_t seed, int most);

}  // namespace traind
