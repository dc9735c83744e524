// trainworker: offers this machine's slots to traind and runs what it is given.
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <tuple>

#include "common/base/clock.h"
#include "common/base/cores.h"
#include "common/base/durable_file.h"
#include "common/base/duration.h"
#include "common/base/host_name.h"
#include "common/base/job_layout.h"
#include "common/base/labels.h"
#include "common/base/local_address.h"
#include "common/base/lock_order.h"
#include "common/base/log.h"
#include "common/base/log_format.h"
#include "common/publish/publisher.h"
#include "third_party/nvml/nvml.h"
#include "worker/daemon/daemon.h"
#include "worker/daemon/devices.h"
#include "worker/daemon/gpu_check.h"

namespace traind {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;
constexpr int kExitLocked = 3;
// traind looks at the lock by taking it for a moment.
constexpr absl::Duration kLockPatience = absl::Milliseconds(300);
// CUDA's libraries may come from a cold disk.
constexpr absl::Duration kGpuPatience = absl::Seconds(60);

struct Flags {
  std::string state;
  std::string coordinator;
  std::string tls, token;
  std::string address, lent_as;
  std::vector<std::string> labels;
  bool standalone = false;
  int slots = 0;
  std::string device = "auto";
  std::string trainrank, trainprep;
  std::string log;
  int64_t log_bytes = kDefaultLogBytes;
  std::string log_format = "text";
  std::string idle_exit, lifetime;
  std::string stop_grace = "5s";
  int64_t keep_bytes = worker::DaemonOptions().own_folder_bytes;
};

std::string BesideMe(const std::string& program) {
  char self[PATH_MAX] = "";
  if (readlink("/proc/self/exe", self, sizeof(self) - 1) <= 0) return program;
  const std::string path = self;
  return path.substr(0, path.rfind('/') + 1) + program;
}

// The lock is held as long as the descriptor is open: to the end of the process.
absl::Status Lock(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return ErrnoStatus(errno, path);
  const absl::Duration until = SystemClock().MonotonicNow() + kLockPatience;
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoStatus(errno, absl::StrCat("lock ", path));
    if (SystemClock().MonotonicNow() >= until) {
      std::string holder = ReadFile(path).value_or("?\n");
      return absl::FailedPreconditionError(absl::StrCat(
          "another trainworker (process ", holder.substr(0, holder.find('\n')), ") holds ", path));
    }
    absl::SleepFor(absl::Milliseconds(10));
  }
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (ftruncate(fd, 0) != 0 || write(fd, pid.data(), pid.size()) < 0) {
    return ErrnoStatus(errno, path);
  }
  return absl::OkStatus();
}

int Fail(const absl::Status& status, int code = kExitFailure) {
  TRAIND_LOG(ERROR) << status.message();
  return code;
}

// The GPUs that are ours; none: there is no driver.
std::optional<std::vector<Nvml::Device>> ListedGpus(worker::DriverVersions& versions) {
  // Only to ask what is there: the library takes memory that a Worker has no use for.
  const std::unique_ptr<Nvml> nvml = Nvml::Load();
  if (nvml == nullptr) return std::nullopt;
  versions = {nvml->DriverVersion(), nvml->CudaVersion()};
  const char* const visible = getenv("CUDA_VISIBLE_DEVICES");
  return visible == nullptr ? nvml->Devices() : worker::VisibleDevices(nvml->Devices(), visible);
}

absl::StatusOr<std::vector<worker::Slot>> FindSlots(const Flags& flags,
                                                    const std::string& trainrank,
                                                    worker::DriverVersions& versions) {
  const std::optional<std::vector<Nvml::Device>> gpus = ListedGpus(versions);
  auto slots = worker::FindSlots({flags.device, flags.slots}, gpus ? &*gpus : nullptr,
                                 [&trainrank](const std::vector<worker::Slot>& listed) {
                                   return worker::CheckGpus(trainrank, listed, kGpuPatience);
                                 });
  if (slots.ok()) {
    TRAIND_LOG(INFO) << (gpus ? "" : "no NVIDIA driver here: ") << slots->size() << " "
                     << slots->front().device << " slots (" << slots->front().name << ")";
  }
  return slots;
}

absl::Status ReadDurations(const Flags& flags, worker::DaemonOptions& options) {
  if (flags.standalone) options.idle_exit = absl::Seconds(60);
  const std::tuple<const char*, const std::string&, absl::Duration&> durations[] = {
      {"--idle-exit", flags.idle_exit, options.idle_exit},
      {"--lifetime", flags.lifetime, options.lifetime},
      {"--stop-grace", flags.stop_grace, options.stop_grace}};
  for (const auto& [name, text, value] : durations) {
    if (text.empty()) continue;
    const absl::StatusOr<absl::Duration> read = DurationFromText(text);
    if (!read.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": ", read.status().message()));
    }
    value = *read;
  }
  return absl::OkStatus();
}

int RunWorker(const Flags& flags) {
  if (flags.log_format == "json") SetLogFormat(LogFormat::kJson);
  if (!flags.log.empty()) {
    const absl::Status opened = LogToFile(flags.log, flags.log_bytes);
    if (!opened.ok()) return Fail(opened);
  }
  if (const absl::Status made = MakeDirs(flags.state); !made.ok()) return Fail(made);
  char* real = realpath(flags.state.c_str(), nullptr);
  if (real == nullptr) return Fail(ErrnoStatus(errno, flags.state));
  const std::string state = real;
  free(real);

  worker::DaemonOptions options;
  options.state_dir = state;
  options.coordinator = flags.coordinator;
  options.tls_dir = flags.tls;
  options.token_file = flags.token;
  options.address = flags.address;
  if (const char* const lead = getenv("MASTER_ADDR");
      flags.address.empty() && lead != nullptr && IsLocalAddress(lead)) {
    options.address = lead;  // that of another machine says nothing about this one
  }
  if (const char* const port = getenv("MASTER_PORT");
      port != nullptr &&
      (!absl::SimpleAtoi(port, &options.port) || options.port < 1 || options.port > 65'535)) {
    return Fail(absl::InvalidArgumentError(absl::StrCat("MASTER_PORT is no port: ", port)),
                kExitUsage);
  }
  // In seconds, as launchers of training scripts set it.
  if (const char* const timeout = getenv("NCCL_TIMEOUT"); timeout != nullptr) {
    double seconds = 0;
    if (!absl::SimpleAtod(timeout, &seconds) || !(seconds >= 1 && seconds <= 86'400)) {
      return Fail(absl::InvalidArgumentError(
                      absl::StrCat("NCCL_TIMEOUT is not from 1 to 86400 seconds: ", timeout)),
                  kExitUsage);
    }
    options.core.exchange_timeout = absl::Seconds(seconds);
  }
  if (const char* const workers = getenv("NUM_WORKERS"); workers != nullptr) {
    constexpr int kMostLoaderThreads = 1024;
    int& threads = options.core.loader_threads;
    if (!absl::SimpleAtoi(workers, &threads) || threads < 0 || threads > kMostLoaderThreads) {
      return Fail(absl::InvalidArgumentError(absl::StrCat("NUM_WORKERS is not from 0 to ",
                                                          kMostLoaderThreads, ": ", workers)),
                  kExitUsage);
    }
  }
  options.standalone = flags.standalone;
  options.own_folder_bytes = flags.keep_bytes;
  for (const worker::Program& program : worker::kPrograms) {
    options.programs[program.name] = BesideMe(program.name);
  }
  if (!flags.trainrank.empty()) options.programs["trainrank"] = flags.trainrank;
  if (!flags.trainprep.empty()) options.programs["trainprep"] = flags.trainprep;
  options.core.cores = UsableCores();
  options.lent_as = flags.lent_as;
  auto labels = ParseLabels(flags.labels);
  if (!labels.ok()) {
    return Fail(absl::InvalidArgumentError(absl::StrCat("--label: ", labels.status().message())),
                kExitUsage);
  }
  options.labels = *std::move(labels);
  if (const absl::Status read = ReadDurations(flags, options); !read.ok()) return Fail(read);
  // Without --standalone the folder may be shared by machines.
  const std::string lock =
      flags.standalone ? std::string(kWorkerLockFile) : WorkerLockFile(HostName());
  if (const absl::Status locked = Lock(absl::StrCat(state, "/", lock)); !locked.ok()) {
    return Fail(locked, absl::IsFailedPrecondition(locked) ? kExitLocked : kExitFailure);
  }

  // Before any thread is started, so that every one has them blocked.
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  sigaddset(&stop, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);
  signal(SIGPIPE, SIG_IGN);
  options.stop_fd = signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK);

  auto slots = FindSlots(flags, options.programs["trainrank"], options.driver);
  if (!slots.ok()) return Fail(slots.status());
  auto daemon = worker::Daemon::Create(
      options, *std::move(slots),
      [](const PublishRequest& request) { return Publish(request, SystemClock().WallNow()); });
  if (!daemon.ok()) return Fail(daemon.status());
  TRAIND_LOG(INFO) << "trainworker " << (*daemon)->worker_id() << " works in " << state;
  if (const absl::Status ran = (*daemon)->Run(); !ran.ok()) return Fail(ran);
  return 0;
}

}  // namespace
}  // namespace traind

int main(int argc, char** argv) {
  traind::IgnoreLockOrder();
  traind::Flags flags;
  CLI::App app(
      "trainworker: offers this machine's slots (its GPUs, or its cores) to traind.\n"
      "Exit status: 0 told to end, idle, or old; 1 failed; 2 wrong flags; 3 another\n"
      "trainworker holds the folder.");
  app.add_option("--state", flags.state, "traind's state folder, or a folder of this Worker's own")
      ->required();
  app.add_option("--coordinator", flags.coordinator,
                 "traind: HOST:PORT or unix:PATH; HOST:PORT,HOST:PORT\n"
                 "also asks where a standby takes over")
      ->required();
  app.add_option("--tls", flags.tls,
                 "folder with ca.pem, worker.pem and worker.key (traind init-tls)");
  app.add_option("--token", flags.token, "file with this Worker's token (traind token add)");
  app.add_option("--address", flags.address,
                 "the address at which Ranks of other Workers reach those of this one (default:\n"
                 "MASTER_ADDR if it is this machine's, else the one from which it reaches traind)");
  app.add_flag("--standalone", flags.standalone,
               "serve the traind on this machine alone; end when it is gone and no work is left");
  app.add_option("--slots", flags.slots, "how many GPUs, or CPU cores, to offer; 0 offers all")
      ->check(CLI::Range(0, 4096));
  app.add_option("--device", flags.device, "auto, cpu or cuda");
  app.add_option(
         "--label", flags.labels,
         "NAME=VALUE: a label for Jobs that ask for it (resources.labels); may be repeated.\n"
         "Gangs that span Workers stay on those of one `rack` where they can")
      ->allow_extra_args(false);
  app.add_option("--trainrank", flags.trainrank,
                 "the program of a Rank (default: beside this one)");
  app.add_option("--trainprep", flags.trainprep,
                 "the program of PREPARE (default: beside this one)");
  app.add_option("--log", flags.log, "the file to which the log is appended (default: stderr)");
  app.add_option("--log-bytes", flags.log_bytes,
                 "how large that file becomes (default 16M); three older ones stay beside it")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--log-format", flags.log_format, "text, or json: an object per line")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.add_option("--keep", flags.keep_bytes,
                 "with a folder of its own: what it may hold besides running Jobs (default 20G)")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--idle-exit", flags.idle_exit,
                 "end so long after the last work; with --standalone (default 60s) only if\n"
                 "traind is gone, too");
  app.add_option("--lifetime", flags.lifetime,
                 "end so long after the start, as after a SIGTERM: for machines that are lent");
  app.add_option("--lent-as", flags.lent_as,
                 "the name by which the engine that lent this machine knows it (traind-provision)")
      ->envname("TRAIND_LENT_AS");
  app.add_option("--stop-grace", flags.stop_grace,
                 "how long folds may take to save and end after a SIGTERM")
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : traind::kExitUsage;  // 0: --help
  }
  return traind::RunWorker(flags);
}
