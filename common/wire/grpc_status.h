// The one place where an absl::Status becomes a gRPC status, and back. Both have the canonical
// codes under the same numbers.
// Threads: safe, pure.
#pragma once

#include <absl/status/status.h>
#include <grpcpp/support/status.h>

#include <string>

namespace traind {

inline grpc::Status ToGrpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
}

inline absl::Status FromGrpc(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace traind
