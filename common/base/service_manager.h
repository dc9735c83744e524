// Tells the service manager, such as systemd, how this process is: the protocol of sd_notify(3).
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <string>

namespace traind {

// Threads: immutable.
// Errors: of the socket; a process that nobody waits for (no socket) sends nothing, which succeeds.
class ServiceManager {
 public:
  // socket: $NOTIFY_SOCKET, a path, or '@' and a name in the abstract namespace. Empty: nobody
  // waits.
  explicit ServiceManager(std::string socket) : socket_(std::move(socket)) {}

  bool listens() const { return !socket_.empty(); }
  // The start is over. `status` is a line for people.
  absl::Status SendReady(absl::string_view status) const;
  // The process works. Without it for as long as WatchdogSec says, the manager ends the process.
  absl::Status SendAlive() const { return Send("WATCHDOG=1"); }
  // The process ends by itself.
  absl::Status SendStopping() const { return Send("STOPPING=1"); }

 private:
  absl::Status Send(absl::string_view message) const;

  const std::string socket_;
};

}  // namespace traind
