#include "server/rpc/caller_of.h"

#include "common/base/clock.h"
#include "common/base/status_macros.h"

namespace traind {

absl::StatusOr<Caller> CallerOf(const grpc::ServerContextBase& context, const CallChecks& checks) {
  if (checks.users != nullptr) RETURN_IF_ERROR(checks.users->Check(context.peer()));
  if (checks.gate == nullptr) return Caller();
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find("authorization");
  const absl::string_view authorization =
      found == metadata.end() ? absl::string_view()
                              : absl::string_view(found->second.data(), found->second.size());
  return checks.gate->tokens().Find(authorization, SystemClock().WallNow());
}

}  // namespace traind
