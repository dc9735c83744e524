// Between the messages of proto/worker_service.proto and the daemon's own values, but for facts
// about Attempts, which common/wire converts.
// Threads: safe, pure.
#pragma once

#include <absl/time/time.h>

#include "proto/worker_service.pb.h"
#include "worker/daemon/devices.h"
#include "worker/daemon/task.h"

namespace traind::worker {

// `now`: when the message came.
TaskStart TaskFromProto(const v1::StartTask& start, absl::Duration now);
// Unknown modes are kAbort: traind wants it to end.
StopMode StopModeFromProto(v1::StopAttempt::Mode mode);
// Unknown reasons are kNone.
StopReason StopReasonFromProto(v1::StopReason reason);
// -1 is never; else so many ms from now.
absl::Duration MomentFromMs(int64_t ms, absl::Duration now);

rank_protocol::Rows RowsFromProto(const v1::AskRows& ask);
v1::WorkerMessage AnswerToProto(const rank_protocol::Answered& answer);
v1::WorkerMessage ReportToProto(const ReportAction& report);
v1::WorkerMessage PublishedToProto(const ReportPublishedAction& published);
v1::SlotInfo SlotToProto(const Slot& slot, int index);

}  // namespace traind::worker
