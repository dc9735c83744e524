// The part of a spec on which the control core decides.
#pragma once

#include "proto/job.pb.h"
#include "server/domain/job.h"

namespace traind {

// REQUIRES: checked and resolved (common/spec/spec_rules.h). What the files tell, and the interval
// of checkpoints, are left open.
Spec ToDomain(const v1::JobSpec& from);

}  // namespace traind
