// A keeper is the process between trainprog and the user's program. It ends all that the program
// has started: when the program ends, when it is told to, and when trainprog is gone, however that
// died.
//
// trainprog starts it as `trainprog --keep FD COMMAND...` in the program's folder and with its
// environment. FD is one end of a stream socket:
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
inline constexpr int kReportDescriptor = 3;

enum class KeeperOrder : char { kSoftStop = 's', kTerminate = 't', kKill = 'k' };

struct KeeperReport {
  int32_t exec_error = 0;   // errno of starting the program; 0: it was started
  int32_t wait_status = 0;  // of the program, as waitpid returns it
  int32_t left_behind = 0;  // processes that it had left and that were killed
  int64_t peak_bytes = 0;   // the largest resident size of one of its processes
  double cpu_s = 0;         // of all its processes
};

// main() of the keeper. Returns its exit status.
int RunKeeper(int descriptor, char** command);

}  // namespace traind
