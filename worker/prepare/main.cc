// trainprep: reads one PREPARE from its standard input, writes its messages to its standard
// output, and exits with 0 (worker/rank_protocol/messages.h).
//
//   echo '{"type":"prepare","job":"j","state_dir":"/tmp/s","spec_json":"..."}' | trainprep
#include <absl/strings/str_cat.h>
#include <absl/time/time.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <thread>

#include "common/base/clock.h"
#include "worker/prepare/prepare.h"
#include "worker/rank_protocol/line_channel.h"
#include "worker/rank_protocol/messages.h"

namespace traind {
namespace {

using rank_protocol::LineChannel;

constexpr absl::Duration kPatience = absl::Seconds(30);  // with a Worker that does not read

// The message of the SIGBUS handler: a mapped data file was truncated while it was read.
char truncated_line[512];
size_t truncated_line_size = 0;

void OnBusError(int) {
  ssize_t ignored = write(STDOUT_FILENO, truncated_line, truncated_line_size);
  (void)ignored;
  _exit(0);
}

void HandleTruncatedFiles(int64_t attempt) {
  rank_protocol::Failed failed;
  failed.attempt = attempt;
  failed.reason = AttemptEndReason::kDataError;
  failed.message = "a data file was truncated while it was read";
  const std::string line = absl::StrCat(rank_protocol::Encode(failed), "\n");
  truncated_line_size = std::min(line.size(), sizeof truncated_line);
  std::memcpy(truncated_line, line.data(), truncated_line_size);
  signal(SIGBUS, OnBusError);
}

// Ends this process when the Worker ends, or sends exit or stop. If the input is a pipe or a
// file, as when run by hand, its end has no meaning.
void WatchWorker(LineChannel& channel) {
  struct stat info;
  if (fstat(STDIN_FILENO, &info) != 0 || !S_ISSOCK(info.st_mode)) return;
  std::thread([&channel] {
    for (;;) {
      const absl::StatusOr<std::string> line = channel.ReadLine(absl::Hours(24));
      if (absl::IsDeadlineExceeded(line.status())) continue;
      if (!line.ok()) _exit(0);
      const auto message = rank_protocol::DecodeToProcess(*line);
      if (message.ok() && (std::holds_alternative<rank_protocol::Exit>(*message) ||
                           std::holds_alternative<rank_protocol::Stop>(*message))) {
        _exit(0);
      }
    }
  }).detach();
}

int Main() {
  signal(SIGPIPE, SIG_IGN);
  // Never freed, because it must outlive the watching thread.
  auto& channel = *new LineChannel(STDIN_FILENO, STDOUT_FILENO);
  const auto send = [&channel](const rank_protocol::FromProcess& message) {
    // If nobody reads the messages, there is no reason to go on.
    if (!channel.WriteLine(rank_protocol::Encode(message), kPatience).ok()) _exit(1);
  };
  for (;;) {
    const absl::StatusOr<std::string> line = channel.ReadLine(absl::Hours(24));
    if (absl::IsDeadlineExceeded(line.status())) continue;
    if (!line.ok()) return 0;
    const auto message = rank_protocol::DecodeToProcess(*line);
    if (!message.ok()) {
      rank_protocol::Failed failed;
      failed.reason = AttemptEndReason::kInternal;
      failed.message = std::string(message.status().message());
      send(failed);
      return 1;
    }
    if (std::holds_alternative<rank_protocol::Exit>(*message)) return 0;
    if (const auto* task = std::get_if<rank_protocol::Prepare>(&*message)) {
      HandleTruncatedFiles(task->attempt);
      WatchWorker(channel);
      RunPrepare(*task, SystemClock(), send);
      return 0;
    }
  }
}

}  // namespace
}  // namespace traind

int main() {
  const int status = traind::Main();
  // Without destructors, because the watching thread may still use its channel.
  _exit(status);
}
