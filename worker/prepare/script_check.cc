#include "worker/prepare/script_check.h"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/durable_file.h"
#include "common/status_macros.h"

namespace traind {
namespace {

// As RowEncoder makes them for such a model: codes of what is missing and of what no
// training row has come before the categories.
constexpr int64_t kCodesBefore = 2;

std::vector<std::string> Arguments(const ScriptCheck& check, const Table& table) {
  const TableSchema& schema = table.schema();
  int64_t numeric = 0;
  std::vector<std::string> cardinalities;
  for (const Column& column : schema.features) {
    if (column.floor_only) continue;
    if (column.kind == ColumnKind::kNumeric) {
      ++numeric;
    } else {
      cardinalities.push_back(
          absl::StrCat(static_cast<int64_t>(column.categories.size()) + kCodesBefore));
    }
  }
  const bool classes = schema.target_kind == TargetKind::kClasses;
  if (check.past_is_input) numeric += 2 * static_cast<int64_t>(schema.targets());
  std::vector<std::string> arguments = {
      check.program,
      "try-script",
      check.path,
      check.sha256,
      absl::StrCat(numeric),
      absl::StrCat(check.window),
      absl::StrCat(classes ? schema.classes.size() : schema.targets())};
  arguments.insert(arguments.end(), cardinalities.begin(), cardinalities.end());
  return arguments;
}

// What the child says until it ends; DeadlineExceeded.
absl::StatusOr<std::string> ReadAll(int fd, absl::Duration patience) {
  constexpr size_t kMost = 1 << 16;
  const absl::Duration until = SystemClock().MonotonicNow() + patience;
  std::string text;
  char part[4096];
  while (text.size() < kMost) {
    const absl::Duration left = until - SystemClock().MonotonicNow();
    if (left <= absl::ZeroDuration()) return absl::DeadlineExceededError("");
    pollfd ready{fd, POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1) <= 0) continue;
    const ssize_t got = read(fd, part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(part, static_cast<size_t>(got));
  }
  return text;
}

absl::Status Wrong(const ScriptCheck& check, absl::string_view what) {
  return absl::FailedPreconditionError(absl::StrCat("model.script: ", check.path, ": ", what));
}

}  // namespace

std::string RankProgram() {
  char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
  if (length <= 0) return "trainrank";
  std::string path(self, static_cast<size_t>(length));
  return absl::StrCat(path.substr(0, path.rfind('/') + 1), "trainrank");
}

absl::Status CheckScript(const ScriptCheck& check, const Table& table, absl::Duration patience) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot make a pipe");
  absl::Cleanup close_reading = [&] { close(ends[0]); };
  std::vector<std::string> arguments = Arguments(check, table);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  absl::Cleanup forget = [&] { posix_spawn_file_actions_destroy(&files); };
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
  pid_t child = 0;
  const int error =
      posix_spawn(&child, check.program.c_str(), &files, nullptr, argv.data(), environ);
  close(ends[1]);
  if (error != 0) return ErrnoStatus(error, absl::StrCat("cannot start ", check.program));
  const absl::StatusOr<std::string> said = ReadAll(ends[0], patience);
  kill(child, SIGKILL);
  int ended = 0;
  while (waitpid(child, &ended, 0) < 0 && errno == EINTR) {
  }
  if (absl::IsDeadlineExceeded(said.status())) {
    return Wrong(check, absl::StrCat("did not come back from a few rows within ",
                                     absl::FormatDuration(patience), ": does it loop for ever?"));
  }
  RETURN_IF_ERROR(said.status());
  const auto line = nlohmann::json::parse(*said, nullptr, /*allow_exceptions=*/false);
  if (!line.is_object()) {
    const bool by_time = WIFSIGNALED(ended) && (WTERMSIG(ended) == SIGXCPU);
    return Wrong(check, by_time ? "a few rows take it more than ten seconds: does it loop for ever?"
                                : "the process that tried it ended without a word");
  }
  if (line.contains("error") && line["error"].is_string()) {
    return absl::FailedPreconditionError(line["error"].get<std::string>());
  }
  return absl::OkStatus();
}

}  // namespace traind
