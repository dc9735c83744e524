// What it costs a fold that its files travel between traind and a Worker with a state folder of its
// own, by what the Job's Attempts have told (facts::Transfers).
//
// Threads: safe, nothing is kept.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "server/domain/job.h"

namespace traind {

// The slots on which the Job's next fold may start.
struct TransferPlaces {
  int slots = 0;
  int own = 0;  // of these, on Workers with folders of their own: files travel
  // Of these again, on each Worker on which an Attempt of the Job ran.
  std::map<std::string, int> known;
};

// Returns whether an Attempt has told of files that travelled.
bool FilesTravel(const std::vector<Attempt>& attempts);

// Returns the seconds for which a fold that starts now is expected to fetch: the mean over the
// slots of `places`. A Worker has what another fold of the Job has fetched there, or PREPARE has
// written; it only has to compare the files.
double FetchSeconds(const std::vector<Attempt>& attempts, const TransferPlaces& places);

// Returns the bytes that travel at the end of a fold: its predictions, its last checkpoint and the
// one before it, which may be on its way then.
int64_t ResultBytes(const Job& job);

// Returns the seconds in which a fold's results get to traind.
double SendSeconds(const std::vector<Attempt>& attempts, int64_t bytes);

}  // namespace traind
