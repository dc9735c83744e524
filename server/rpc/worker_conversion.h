// The core's commands to Workers as messages of proto/worker_service.proto, and a Worker's Hello
// as an event. Facts about Attempts are converted in common/wire.
// Threads: safe, pure.
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include "proto/worker_service.pb.h"
#include "server/control/events.h"

namespace traind {

WorkerAttached AttachedFromProto(const v1::Hello& hello, uint64_t session);

// Absolute times become what remains of them at `now`.
v1::CoordinatorMessage ToProto(const StartCommand& command, absl::Time now);
v1::CoordinatorMessage ToProto(const StopCommand& command);
v1::CoordinatorMessage ToProto(const MeetCommand& command);
v1::CoordinatorMessage ToProto(const ReplanCommand& command, absl::Time now);
v1::CoordinatorMessage ToProto(const AckCommand& command);

}  // namespace traind
