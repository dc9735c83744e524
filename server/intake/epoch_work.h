// Estimates how much a Job's training computes, from its spec and a look at its files.
#pragma once

#include "proto/job.pb.h"
#include "server/intake/data_files.h"
#include "server/intake/media_load.h"
#include "server/plan/speed_guess.h"

namespace traind {

// Returns the work of an epoch. resolved: with all defaults, of a Job that trains. media: the files
// of its training rows. Every kind of network has its own case, and the compiler reports one that
// is missing.
// Threads: safe.
EpochWork EpochWorkOf(const v1::JobSpec& resolved, const DataFile& train, const MediaLoad& media);

}  // namespace traind
