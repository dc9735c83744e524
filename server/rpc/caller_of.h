// Who makes a call of gRPC.
#pragma once

#include <absl/status/statusor.h>
#include <grpcpp/server_context.h>

#include "server/access/caller.h"
#include "server/access/gate.h"
#include "server/access/local_users.h"

namespace traind {

// The checks before the calls of a port; null: there is no such check. Both outlive the services.
struct CallChecks {
  Gate* gate = nullptr;               // callers have tokens, which gRPC has checked by now
  const LocalUsers* users = nullptr;  // callers are users of this machine
};

// The caller; one without a name where no token is needed. The token is looked up again: gRPC's
// AuthContext belongs to a connection, whose calls may come with different tokens.
// Errors: Unauthenticated: the token is gone by now; PermissionDenied: another user's connection.
absl::StatusOr<Caller> CallerOf(const grpc::ServerContextBase& context, const CallChecks& checks);

}  // namespace traind
