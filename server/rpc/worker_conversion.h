// The one border between the core's words and proto/worker_service.proto.
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <optional>

#include "proto/worker_service.pb.h"
#include "server/control/events.h"

namespace traind {

// nullopt: a fact that this traind does not know (of a newer Worker), or one whose
// path leaves its folder.
std::optional<Fact> FactFromProto(const v1::AttemptReport& report);
WorkerAttached AttachedFromProto(const v1::Hello& hello, uint64_t session);

// Absolute times become what remains of them at `now`.
v1::CoordinatorMessage ToProto(const StartCommand& command, absl::Time now);
v1::CoordinatorMessage ToProto(const StopCommand& command);
v1::CoordinatorMessage ToProto(const ReplanCommand& command, absl::Time now);
v1::CoordinatorMessage ToProto(const AckCommand& command);

}  // namespace traind
