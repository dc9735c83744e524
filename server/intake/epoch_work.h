// How much a Job's training computes, as far as its spec and a look at its files tell.
#pragma once

#include "proto/job.pb.h"
#include "server/intake/data_files.h"
#include "server/intake/media_load.h"
#include "server/plan/speed_guess.h"

namespace traind {

// resolved: with all defaults, of a Job that trains. media: the files of its training rows.
// Every kind of network has its line in it: the compiler names one that is forgotten.
// Threads: safe.
EpochWork EpochWorkOf(const v1::JobSpec& resolved, const DataFile& train, const MediaLoad& media);

}  // namespace traind
