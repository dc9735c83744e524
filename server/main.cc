// traind: the coordinator daemon.
#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

#include "common/base/descriptors.h"
#include "common/base/lock_order.h"
#include "common/base/log.h"
#include "common/base/log_format.h"
#include "common/base/service_manager.h"
#include "server/access_commands.h"
#include "server/admin.h"
#include "server/config.h"
#include "server/coordinator.h"

namespace traind {
namespace {

constexpr absl::Duration kStopGrace = absl::Seconds(10);
// A commit may wait so long for a busy disk.
constexpr absl::Duration kLoopHangs = absl::Seconds(20);

int ExitCode(const absl::Status& status) {
  if (absl::IsAborted(status)) return kExitStateInUse;
  if (absl::IsUnavailable(status)) return kExitPortInUse;
  return kExitError;
}

// Waits for SIGINT or SIGTERM, or for the store to fail. Tells the manager as long as decisions are
// made.
absl::Status WaitForEnd(const Coordinator& coordinator, const ServiceManager& manager,
                        const sigset_t& signals) {
  while (true) {
    const timespec while_waiting{0, 100'000'000};
    if (sigtimedwait(&signals, nullptr, &while_waiting) > 0) return absl::OkStatus();
    if (const absl::Status fatal = coordinator.fatal(); !fatal.ok()) return fatal;
    // One message that is lost does no harm.
    if (coordinator.SinceLastTurn() < kLoopHangs) (void)manager.SendAlive();
  }
}

// The address with the port that was taken.
std::string At(const std::string& address, int port) {
  return absl::StrCat(address.substr(0, address.rfind(':')), ":", port);
}

// Makes the object from the environment, where the Worker shall not find it: it is no such process.
ServiceManager Manager() {
  const char* const socket = getenv("NOTIFY_SOCKET");
  ServiceManager manager(socket == nullptr ? "" : socket);
  unsetenv("NOTIFY_SOCKET");
  return manager;
}

int Run(const Config& config) {
  SetMinLogLevel(config.log_level);
  if (config.log_json) SetLogFormat(LogFormat::kJson);
  if (!config.log_file.empty()) {
    if (const absl::Status opened = LogToFile(config.log_file, config.log_bytes); !opened.ok()) {
      TRAIND_LOG(ERROR) << "--log: " << opened.message();
      return kExitError;
    }
  }
  // The signals are blocked in every thread from here on, and this thread waits for them. A client
  // or Worker that disconnects must not end the daemon.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  RaiseDescriptorLimit();
  const ServiceManager manager = Manager();

  if (!config.restore_from.empty()) {
    const absl::Status restored = RestoreArchive(config.restore_from, config.state_dir);
    if (!restored.ok()) {
      std::cerr << "traind: error: --restore: " << restored.message() << "\n";
      return ExitCode(restored);
    }
  }
  StandbyCalls standby;
  standby.waits = [&manager](const std::string& host) {
    const std::string waits = absl::StrCat("traind standby for=", host, " pid=", getpid());
    std::puts(waits.c_str());
    std::fflush(stdout);
    if (const absl::Status sent = manager.SendReady(waits); !sent.ok()) TRAIND_LOG(WARNING) << sent;
  };
  standby.stop = [&manager, &signals] {
    (void)manager.SendAlive();
    const timespec at_once{0, 0};
    return sigtimedwait(&signals, nullptr, &at_once) > 0;
  };
  auto coordinator = Coordinator::Start(config, standby);
  if (absl::IsCancelled(coordinator.status())) return kExitOk;
  if (!coordinator.ok()) {
    std::cerr << "traind: error: " << coordinator.status().message() << "\n";
    return ExitCode(coordinator.status());
  }
  const std::string http = config.http.empty() ? "-" : At(config.http, (*coordinator)->http_port());
  const std::string ready =
      absl::StrCat("traind ready grpc=", At(config.listen, (*coordinator)->port()), " http=", http,
                   " pid=", getpid());
  std::puts(ready.c_str());
  std::fflush(stdout);
  if (const absl::Status sent = manager.SendReady(ready); !sent.ok()) TRAIND_LOG(WARNING) << sent;

  const absl::Status ended = WaitForEnd(**coordinator, manager, signals);
  if (!ended.ok()) {
    std::cerr << "traind: error: the store failed: " << ended.message()
              << "; start traind again, it finds out what was stored\n";
    // Destructors would write to a store whose state nobody knows.
    std::_Exit(kExitError);
  }
  TRAIND_LOG(INFO) << "stopping; a second signal stops at once";
  (void)manager.SendStopping();
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
  traind::IgnoreLockOrder();
  if (argc > 1 && std::strcmp(argv[1], "admin") == 0) return traind::RunAdmin(argc - 1, argv + 1);
  if (argc > 1 && std::strcmp(argv[1], "token") == 0) return traind::RunToken(argc - 1, argv + 1);
  if (argc > 1 && std::strcmp(argv[1], "init-tls") == 0) {
    return traind::RunInitTls(argc - 1, argv + 1);
  }
  const traind::ParsedFlags flags = traind::ParseFlags(argc, argv);
  if (flags.exit_code) return *flags.exit_code;
  return traind::Run(flags.config);
}
