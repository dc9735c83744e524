#pragma once

#include <absl/status/status.h>

#include "worker/learner/learner.h"

namespace traind {

// InvalidArgument if options contradict each other or the data.
absl::Status CheckLearnerOptions(const LearnerOptions& options, const LearnerData& data);

// InvalidArgument if a code is not below its column's cardinality.
absl::Status CheckCodes(const ModelShape& shape, const EncodedRows& rows);

}  // namespace traind
