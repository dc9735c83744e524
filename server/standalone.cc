#include "server/standalone.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/log.h"
#include "common/base/start_program.h"
#include "common/base/status_macros.h"

namespace traind {
namespace {

constexpr absl::Duration kWatchEvery = absl::Milliseconds(200);
// A Worker that dies repeatedly is restarted at growing intervals.
constexpr absl::Duration kFirstBackoff = absl::Milliseconds(100);
constexpr absl::Duration kMaxBackoff = absl::Seconds(5);
constexpr absl::Duration kStartUp = absl::Seconds(3);  // from spawn to lock

}  // namespace

absl::StatusOr<FileLock> FileLock::Acquire(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    close(fd);
    if (error != EWOULDBLOCK) return ErrnoStatus(error, absl::StrCat("cannot lock ", path));
    return absl::AbortedError(absl::StrCat("the process ", Holder(path), " holds ", path));
  }
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (ftruncate(fd, 0) != 0 ||
      pwrite(fd, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    // The pid only informs people; the lock holds without it.
    TRAIND_LOG(WARNING) << "cannot write the pid into " << path;
  }
  return FileLock(fd);
}

bool FileLock::IsHeld(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  // Without descriptors or memory nobody can tell, and a Worker must not be taken for dead.
  if (fd < 0) return errno == EMFILE || errno == ENFILE || errno == ENOMEM;
  // The lock is shared, so that two processes that look do not take each other for a holder.
  const bool held = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(fd);
  return held;
}

pid_t FileLock::Holder(const std::string& path) {
  const auto text = ReadFile(path);
  int pid = 0;
  if (!text.ok() || !absl::SimpleAtoi(*text, &pid)) return 0;
  return pid;
}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileLock::~FileLock() {
  if (fd_ >= 0) close(fd_);
}

WorkerSupervisor::WorkerSupervisor(WorkerProcessOptions options, std::function<void()> died,
                                   std::function<int64_t()> heartbeats)
    : options_(std::move(options)), died_(std::move(died)), heartbeats_(std::move(heartbeats)) {}

WorkerSupervisor::~WorkerSupervisor() { StopWatching(); }

std::string WorkerSupervisor::lock_path() const {
  return absl::StrCat(options_.state_dir, "/", kWorkerLockFile);
}

absl::Status WorkerSupervisor::Start() {
  if (access(options_.binary.c_str(), X_OK) != 0) {
    return ErrnoStatus(errno, absl::StrCat("no Worker program at ", options_.binary));
  }
  if (FileLock::IsHeld(lock_path())) {
    TRAIND_LOG(INFO) << "the Worker " << FileLock::Holder(lock_path()) << " is still running";
  } else {
    died_();  // with the traind before this one, or after it
    if (const absl::Status spawned = Spawn(); !spawned.ok()) return spawned;
  }
  thread_ = std::thread([this] { Watch(); });
  return absl::OkStatus();
}

void WorkerSupervisor::StopWatching() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    stopped_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

absl::Status WorkerSupervisor::Spawn() {
  ProgramStart start;
  start.arguments = {
      options_.binary, "--standalone",
      "--state",       options_.state_dir,
      "--coordinator", absl::StrCat("unix:", options_.state_dir, "/", kWorkerSocket)};
  if (options_.slots >= 0) {
    start.arguments.push_back("--slots");
    start.arguments.push_back(absl::StrCat(options_.slots));
  }
  for (const std::string& label : options_.labels) {
    start.arguments.push_back("--label");
    start.arguments.push_back(label);
  }
  start.error_file = absl::StrCat(options_.state_dir, "/", kWorkerLogFile);
  // Neither Ctrl-C nor a hang-up of traind's terminal reaches the Worker.
  start.group = ProgramStart::kOwnSession;
  ASSIGN_OR_RETURN(const pid_t pid, StartProgram(start));
  TRAIND_LOG(INFO) << "started the Worker " << pid;
  children_.push_back(pid);
  return absl::OkStatus();
}

// Only the Workers among traind's children are reaped here; a Worker of an earlier traind belongs
// to init.
void WorkerSupervisor::ReapWorkers() {
  children_.erase(std::remove_if(children_.begin(), children_.end(),
                                 [](pid_t child) { return waitpid(child, nullptr, WNOHANG) != 0; }),
                  children_.end());
}

void WorkerSupervisor::Watch() {
  absl::Duration backoff = kFirstBackoff;
  absl::Duration spawned = SystemClock().MonotonicNow();
  bool alive = FileLock::IsHeld(lock_path());
  absl::Duration next_spawn = absl::InfiniteDuration();
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      const auto stopping = [this] {
        mutex_.AssertReaderHeld();
        return stopping_;
      };
      if (stopped_.Await(mutex_, kWatchEvery, stopping)) break;
    }
    ReapWorkers();
    const absl::Duration now = SystemClock().MonotonicNow();
    if (FileLock::IsHeld(lock_path())) {
      KillIfHung();
      alive = true;
      next_spawn = absl::InfiniteDuration();
      if (now - spawned > absl::Seconds(30)) backoff = kFirstBackoff;
      continue;
    }
    silence_ = absl::ZeroDuration();
    if (next_spawn == absl::InfiniteDuration()) {
      if (!alive && now - spawned < kStartUp) continue;  // it has not locked the file yet
      TRAIND_LOG(WARNING) << "the Worker is dead; another one starts in "
                          << absl::FormatDuration(backoff);
      if (alive) died_();
      alive = false;
      next_spawn = now + backoff;
      backoff = std::min(backoff * 2, kMaxBackoff);
    }
    if (now < next_spawn) continue;
    spawned = now;
    next_spawn = absl::InfiniteDuration();
    if (const absl::Status status = Spawn(); !status.ok()) {
      TRAIND_LOG(ERROR) << status;
      next_spawn = now + backoff;
    }
  }
}

void WorkerSupervisor::KillIfHung() {
  const int64_t heard = heartbeats_();
  silence_ = heard == heard_ ? silence_ + kWatchEvery : absl::ZeroDuration();
  heard_ = heard;
  if (silence_ < options_.hang_after) return;
  silence_ = absl::ZeroDuration();
  const pid_t holder = FileLock::Holder(lock_path());
  if (holder <= 0) return;
  TRAIND_LOG(ERROR) << "the Worker " << holder << " has sent no heartbeat for "
                    << absl::FormatDuration(options_.hang_after) << "; it is killed";
  kill(holder, SIGKILL);
}

void WorkerSupervisor::WaitForEnd(absl::Duration grace) {
  // Returns the Worker started here, which may not have locked the file yet, or the one that an
  // earlier traind started. 0: none lives; -1: its pid is not known yet.
  const auto living = [this]() -> pid_t {
    ReapWorkers();
    if (!children_.empty()) return children_.back();
    if (!FileLock::IsHeld(lock_path())) return 0;
    const pid_t holder = FileLock::Holder(lock_path());
    return holder > 0 ? holder : -1;
  };
  const auto ended_within = [&living](absl::Duration grace) {
    const absl::Duration end = SystemClock().MonotonicNow() + grace;
    while (living() != 0) {
      if (SystemClock().MonotonicNow() >= end) return false;
      absl::SleepFor(absl::Milliseconds(10));
    }
    return true;
  };
  // A process without the lock has never attached, so nobody has told it to end.
  const bool told = FileLock::IsHeld(lock_path());
  if (told && ended_within(grace)) return;
  for (const int signal : {SIGTERM, SIGKILL}) {
    const pid_t pid = living();
    if (pid > 0) kill(pid, signal);
    if (ended_within(grace)) return;
  }
}

}  // namespace traind
