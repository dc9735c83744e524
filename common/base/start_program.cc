#include "common/base/start_program.h"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include "common/base/durable_file.h"

extern char** environ;

namespace traind {

absl::StatusOr<pid_t> StartProgram(const ProgramStart& start) {
  std::vector<std::string> arguments = start.arguments;
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  const absl::Cleanup forget_files = [&] { posix_spawn_file_actions_destroy(&files); };
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (start.output >= 0) {
    posix_spawn_file_actions_adddup2(&files, start.output, STDOUT_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  }
  if (!start.error_file.empty()) {
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, start.error_file.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0600);
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  const absl::Cleanup forget_attributes = [&] { posix_spawnattr_destroy(&attributes); };
  sigset_t none, usual;
  sigemptyset(&none);
  sigemptyset(&usual);
  sigaddset(&usual, SIGPIPE);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setpgroup(&attributes, 0);
  const int group = start.group == ProgramStart::kOwnGroup     ? POSIX_SPAWN_SETPGROUP
                    : start.group == ProgramStart::kOwnSession ? POSIX_SPAWN_SETSID
                                                               : 0;
  posix_spawnattr_setflags(
      &attributes, static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | group));
  pid_t pid = 0;
  const int error = posix_spawn(&pid, argv[0], &files, &attributes, argv.data(), environ);
  if (error != 0) return ErrnoStatus(error, absl::StrCat("cannot start ", start.arguments[0]));
  return pid;
}

}  // namespace traind
