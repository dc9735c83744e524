// trainprep: takes one PREPARE from its standard input, tells what becomes of it
// on its standard output, and exits 0 (worker/rank_protocol/messages.h).
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

// What the SIGBUS handler writes: a mapped data file was cut while we read it.
char cut_line[512];
size_t cut_line_size = 0;

void OnBusError(int) {
  ssize_t ignored = write(STDOUT_FILENO, cut_line, cut_line_size);
  (void)ignored;
  _exit(0);
}

void ExpectCutFiles(int64_t attempt) {
  rank_protocol::Failed failed;
  failed.attempt = attempt;
  failed.reason = AttemptEndReason::kDataError;
  failed.message = "a data file was cut short while it was read";
  const std::string line = absl::StrCat(rank_protocol::Encode(failed), "\n");
  cut_line_size = std::min(line.size(), sizeof cut_line);
  std::memcpy(cut_line, line.data(), cut_line_size);
  signal(SIGBUS, OnBusError);
}

// A Worker that ends, or says exit or stop, ends us too. By hand, where input is
// a pipe or a file, its end means nothing.
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
  // Outlives the watching thread.
  auto& channel = *new LineChannel(STDIN_FILENO, STDOUT_FILENO);
  const auto send = [&channel](const rank_protocol::FromProcess& message) {
    // Nobody listens any more: there is nobody to work for.
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
      ExpectCutFiles(task->attempt);
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
  // Without destructors: the watching thread may still be at its channel.
  _exit(status);
}
