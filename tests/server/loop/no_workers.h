// A gateway without Workers, for tests of the control loop.
#pragma once

#include "server/loop/control_loop.h"

namespace traind {

// Threads: safe; does nothing.
class NoWorkers final : public WorkerGateway {
 public:
  void Send(const AckCommand&) override {}
  void Send(const StartCommand&, absl::Time) override {}
  void Send(const StopCommand&) override {}
  void Send(const MeetCommand&) override {}
  void Send(const ReplanCommand&, absl::Time) override {}
  void Send(const ShutdownCommand&) override {}
  void Note(const WorkerNote&) override {}
  void CloseAll() override {}
};

}  // namespace traind
