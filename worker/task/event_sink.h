#pragma once

#include "worker/rank_protocol/messages.h"

namespace traind {

// Where a task's messages go. Threads: safe.
class EventSink {
 public:
  virtual ~EventSink() = default;
  // Never waits for the reader; never lost.
  virtual void Send(const rank_protocol::FromProcess& message) = 0;
  // May be dropped.
  virtual void SendProgress(const rank_protocol::Progress& progress) = 0;
};

}  // namespace traind
