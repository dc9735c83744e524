// A keeper is the process between trainprog and the user's program. It ends all that the program
// has started: when the program ends, when it is told to, and when trainprog is gone, however that
// died.
//
// trainprog starts it as `trainprog --keep FD on|off N FOLDER... COMMAND...` in the program's folder
// and with its environment. off: the program has no network. N folders: it writes to these alone,
// where N is above 0 (confine.h). FD is one end of a stream socket:
//   trainprog writes bytes     's' soft stop: SIGUSR1 to the processes that catch it
//                              't' SIGTERM to all processes
//                              'k' SIGKILL to all processes
//   the keeper writes, once    a KeeperReport, after all processes are gone; then it exits
//   end of input               SIGKILL to all processes; the keeper exits
// Descriptor 3 is the program's, for its report lines (report_lines.h).
#pragma once

#include <cstdint>

namespace traind {

inline constexpr char kKeepFlag[] = "--keep";
inline constexpr char kOnline[] = "on", kOffline[] = "off";
inline constexpr int kReportDescriptor = 3;

enum class KeeperOrder : char { kSoftStop = 's', kTerminate = 't', kKill = 'k' };

// What could not be done for a program that was not started.
enum class StartStep : int32_t { kExec, kOffline, kOwnFolders };

struct KeeperReport {
  int32_t exec_error = 0;   // errno of starting the program; 0: it was started
  StartStep failed_step = StartStep::kExec;  // of exec_error
  int32_t wait_status = 0;  // of the program, as waitpid returns it
  int32_t left_behind = 0;  // processes that it had left and that were killed
  int64_t peak_bytes = 0;   // the largest resident size of one of its processes
  double cpu_s = 0;         // of all its processes
};

// main() of the keeper, with the arguments behind kKeepFlag. Returns its exit status.
int RunKeeper(int count, char** arguments);

}  // namespace traind
