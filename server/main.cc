// traind: the coordinator daemon.
#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <string>

#include "common/base/log.h"
#include "server/config.h"
#include "server/coordinator.h"

namespace traind {
namespace {

constexpr absl::Duration kStopGrace = absl::Seconds(10);

int ExitCode(const absl::Status& status) {
  if (absl::IsAborted(status)) return kExitStateInUse;
  if (absl::IsUnavailable(status)) return kExitPortInUse;
  return kExitError;
}

// Waits for SIGINT or SIGTERM, or for the store to fail.
absl::Status WaitForEnd(const Coordinator& coordinator, const sigset_t& signals) {
  while (true) {
    const timespec second{1, 0};
    if (sigtimedwait(&signals, nullptr, &second) > 0) return absl::OkStatus();
    if (const absl::Status fatal = coordinator.fatal(); !fatal.ok()) return fatal;
  }
}

// The address with the port that was taken.
std::string At(const std::string& address, int port) {
  return absl::StrCat(address.substr(0, address.rfind(':')), ":", port);
}

int Run(const Config& config) {
  SetMinLogLevel(config.log_level);
  // The signals are blocked in every thread from here on, and this thread waits for them. A client
  // or Worker that disconnects must not end the daemon.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  auto coordinator = Coordinator::Start(config);
  if (!coordinator.ok()) {
    std::cerr << "traind: error: " << coordinator.status().message() << "\n";
    return ExitCode(coordinator.status());
  }
  const std::string http = config.http.empty() ? "-" : At(config.http, (*coordinator)->http_port());
  std::printf("traind ready grpc=%s http=%s pid=%d\n",
              At(config.listen, (*coordinator)->port()).c_str(), http.c_str(), getpid());
  std::fflush(stdout);

  const absl::Status ended = WaitForEnd(**coordinator, signals);
  if (!ended.ok()) {
    std::cerr << "traind: error: the store failed: " << ended.message() << "\n";
    return kExitError;
  }
  TRAIND_LOG(INFO) << "stopping; a second signal stops at once";
  // A second signal has its default effect.
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  (*coordinator)->Stop(kStopGrace);
  return kExitOk;
}

}  // namespace
}  // namespace traind

int main(int argc, char** argv) {
  const traind::ParsedFlags flags = traind::ParseFlags(argc, argv);
  if (flags.exit_code) return *flags.exit_code;
  return traind::Run(flags.config);
}
