// Errors of calls with their details, which travel beside the text in grpc-status-details-bin.
// Threads: safe, pure.
#pragma once

#include <absl/status/status.h>
#include <grpcpp/support/status.h>

namespace traind {

// The details are those of common/wire/error_details.h. Those beyond what clients take as metadata
// are left out; the text has all of them.
grpc::Status ToGrpcWithDetails(const absl::Status& status);
// The status tells of refused files (common/base/refused_files.h) as its sender's did.
absl::Status FromGrpcWithDetails(const grpc::Status& status);

}  // namespace traind
