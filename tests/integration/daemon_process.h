// A traind for one test: a child process in a new state folder, without a Worker, on a free
// loopback port.
#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <memory>
#include <string>

namespace traind {

// Destroying it ends the process and removes the folder.
// Threads: confined to one.
class DaemonProcess {
 public:
  // Starts traind and waits until it is ready, at most 20 s. Errors: DeadlineExceeded, Internal.
  static absl::StatusOr<std::unique_ptr<DaemonProcess>> Start(const std::string& binary);
  ~DaemonProcess();

  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;

  const std::string& address() const { return address_; }  // 127.0.0.1:PORT
  const std::string& folder() const { return folder_; }    // its data root

 private:
  DaemonProcess() = default;

  std::string folder_;
  std::string address_;
  pid_t pid_ = 0;
  int output_ = -1;
};

}  // namespace traind
