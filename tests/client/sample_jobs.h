// Jobs for tests.
#pragma once

#include "proto/job.pb.h"

namespace traind {

// Two of five folds are done, one is running, and there is one Decision; accepted at 2026-12-01
// 18:00:00 UTC, 60 s budget, 41 s left.
v1::Job RunningJob();

// The same Job at its end: four folds are in the prediction, one was dropped.
v1::Job EndedJob();

}  // namespace traind
