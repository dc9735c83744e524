#include "worker/program/program_trainer.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "common/base/disk_guard.h"
#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/job_rules/program_rules.h"
#include "common/job_rules/task_rules.h"
#include "common/plain/plain_json.h"
#include "worker/program/process_tree.h"
#include "worker/task/failure.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kProgressEvery = absl::Milliseconds(250);
constexpr absl::Duration kPoll = absl::Milliseconds(50);
// Of a fold's folder: there once the program of `setup` has done its work.
constexpr char kSetUp[] = "set-up";
constexpr int kPercent = 100;
constexpr size_t kTailLines = 5;
constexpr size_t kDigestShown = 12;
// PyTorch waits so long by default.
constexpr absl::Duration kExchangeTimeout = absl::Minutes(30);
constexpr size_t kTailBytes = 300;
// Names the processes of a rank of a fold, also for the next start.
constexpr char kProcessOf[] = "TRAIND_PROCESS_OF=";

std::string UnixSeconds(absl::Time at) {
  return absl::StrFormat("%.3f", absl::ToDoubleSeconds(at - absl::UnixEpoch()));
}

// 137 is how a shell passes on that its child was killed by signal 9.
int SignalOf(int wait_status) {
  constexpr int kShellSignal = 128;
  if (WIFSIGNALED(wait_status)) return WTERMSIG(wait_status);
  const int code = WEXITSTATUS(wait_status);
  return code > kShellSignal && code < kShellSignal + 65 ? code - kShellSignal : 0;
}

}  // namespace

ProgramTrainer::ProgramTrainer(rank_protocol::Train train, TaskControl& control, EventSink& sink,
                               const Clock& clock)
    : train_(std::move(train)), control_(control), sink_(sink), clock_(clock) {}

ProgramTrainer::~ProgramTrainer() {
  program_.reset();
  if (lock_ >= 0) close(lock_);
}

std::string ProgramTrainer::InFold(absl::string_view name) const {
  return absl::StrCat(fold_dir_, "/", name);
}

void ProgramTrainer::Log(const char* level, std::string text) {
  sink_.Send(rank_protocol::LogText{level, std::move(text)});
}

double ProgramTrainer::Epochs() const { return std::max(1, orders_.epochs); }

// ---- getting ready ----------------------------------------------------------

absl::Status ProgramTrainer::Start() {
  orders_version_ = control_.version();
  orders_ = control_.orders();
  RETURN_IF_ERROR(ReadSpec());
  fold_dir_ =
      absl::StrCat(train_.state_dir, "/", ProgramDir(train_.job, train_.fold, train_.trial));
  RETURN_IF_ERROR(StorageError(
      MakeDirs(absl::StrCat(train_.state_dir, "/", AttemptDir(train_.job, train_.attempt)))));
  RETURN_IF_ERROR(StorageError(MakeDirs(fold_dir_)));
  checkpoints_.emplace(fold_dir_, spec_.checkpoints);
  travelling_.emplace(train_.state_dir, train_.job,
                      ProgramPack{train_.fold, train_.trial, train_.attempt});
  if (train_.rank == 0) RETURN_IF_ERROR(LockFold());
  // Of an Attempt whose keeper was killed, too; before the folders may be made anew.
  const int stale = KillByVariable(ProcessVariable());
  if (stale > 0) Log("warning", absl::StrCat("ended ", stale, " processes of an earlier start"));
  RETURN_IF_ERROR(train_.rank == 0 ? StorageError(MakeFolders()) : AwaitFolders());
  began_ = progress_at_ = epoch_at_ = clock_.MonotonicNow();
  RETURN_IF_ERROR(Begin());
  SendStarted();
  return absl::OkStatus();
}

bool ProgramTrainer::NeedsSetup() const {
  std::error_code ignored;
  return !spec_.setup.empty() && !fs::exists(InFold(kSetUp), ignored);
}

absl::Status ProgramTrainer::Begin() {
  setting_up_ = NeedsSetup();
  return Launch(setting_up_ ? spec_.setup : spec_.command);
}

// What it has made belongs to the folder, and is no result.
absl::Status ProgramTrainer::AfterSetup() {
  setting_up_ = false;
  const KeeperReport& end = *program_->end();
  const std::string field = user_.answers_rows ? "model.command.setup" : "run.setup";
  if (end.exec_error != 0) {
    return UserError(end.failed_step != StartStep::kExec
                         ? WhyNotStarted(end)
                         : absl::StrCat(field, ": '", spec_.setup[0],
                                        "' cannot be started: ", strerror(end.exec_error)));
  }
  if (const int signal = SignalOf(end.wait_status); signal > 0) {
    return absl::AbortedError(absl::StrCat(field, ": the program was ended by signal ", signal));
  }
  if (end.wait_status != 0) {
    return UserError(absl::StrCat(field, ": the program ended with exit status ",
                                  WEXITSTATUS(end.wait_status), Tail()));
  }
  ASSIGN_OR_RETURN(marks_, MarkAgain(fold_dir_));
  RETURN_IF_ERROR(StorageError(WriteFileDurably(InFold(kSetUp), "")));
  if (train_.rank == 0) RETURN_IF_ERROR(StorageError(travelling_->PutBack(*checkpoints_)));
  return Launch(spec_.command);
}

absl::Status ProgramTrainer::ReadSpec() {
  auto whole = plain::FromJson<plain::JobSpec>(train_.spec_json);
  if (!whole.ok()) return UserError(whole.status().message());
  const auto spec = SpecOfTrial(*std::move(whole), static_cast<int>(train_.trial));
  if (!spec.ok()) return UserError(spec.status().message());
  const std::optional<UserProgram> program = UserProgramOf(*spec);
  if (!program.has_value()) {
    return UserError("run, model.command: expected a command, which this program runs");
  }
  user_ = *program;
  spec_ = user_.run;
  absl::StatusOr<AnswerSample> sample = AnswerSample::Read(spec_.sample_submission, spec_.ranges);
  if (!sample.ok()) return OfUserFiles(sample.status());
  sample_ = *std::move(sample);
  if (!user_.answers_rows) return absl::OkStatus();
  ASSIGN_OR_RETURN(rows_, RowAnswers::Open(train_, *spec, user_));
  AnswerOwner owner = {train_.state_dir, train_.job, train_.attempt, train_.fold, rows_->outputs()};
  saver_ = std::make_unique<AnswerSaver>(std::move(owner), writer_, sink_, clock_);
  return absl::OkStatus();
}

std::string ProgramTrainer::ProcessVariable() const {
  return absl::StrCat(kProcessOf, fold_dir_, "#", train_.rank);
}

PlaceholderValues ProgramTrainer::Values() const {
  PlaceholderValues values;
  values.fold = train_.fold;
  values.folds = static_cast<int>(spec_.folds);
  values.seed = spec_.seed;
  values.epochs = TellsEpochs() ? orders_.epochs : 0;
  values.settings = user_.settings;
  return values;
}

std::vector<std::string> ProgramTrainer::Command(const std::vector<std::string>& words) const {
  const PlaceholderValues values = Values();
  std::vector<std::string> command;
  for (const std::string& argument : words) {
    command.push_back(FillPlaceholders(argument, values));
  }
  return command;
}

// As torchrun sets them, and those of traind.
std::vector<std::string> ProgramTrainer::Environment() const {
  std::vector<std::string> all = {"PYTHONUNBUFFERED=1"};
  const PlaceholderValues values = Values();
  for (const auto& [name, value] : spec_.environment) {
    // That of `run` is the user's own shell's.
    all.push_back(
        absl::StrCat(name, "=", user_.answers_rows ? FillPlaceholders(value, values) : value));
  }
  const auto set = [&all](absl::string_view name, const auto& value) {
    all.push_back(absl::StrCat(name, "=", value));
  };
  set("RANK", train_.rank);
  set("LOCAL_RANK", train_.rank);
  set("WORLD_SIZE", train_.world_size);
  set("LOCAL_WORLD_SIZE", train_.world_size);
  set("MASTER_ADDR", train_.rendezvous.host);
  set("MASTER_PORT", train_.rendezvous.port);
  set("OMP_NUM_THREADS", train_.threads);
  // What the user or the Worker says goes before.
  const auto is_said = [this](const char* name) {
    return spec_.environment.count(name) > 0 || getenv(name) != nullptr;
  };
  if (!is_said("NUM_WORKERS")) set("NUM_WORKERS", train_.threads);
  // Behind the deadline nobody needs what a rank waits for.
  if (!is_said("NCCL_TIMEOUT")) {
    const absl::Duration left = orders_.deadline - clock_.MonotonicNow();
    set("NCCL_TIMEOUT",
        std::max(int64_t{1}, absl::ToInt64Seconds(std::min(left, kExchangeTimeout))));
  }
  set("TRAIND_JOB", train_.job);
  set("TRAIND_FOLD", train_.fold);
  set("TRAIND_FOLDS", spec_.folds);
  set("TRAIND_SEED", spec_.seed);
  set("TRAIND_TRY", try_);
  if (TellsEpochs()) set("TRAIND_EPOCHS", orders_.epochs);
  set("TRAIND_OUT", InFold("out"));
  set("TRAIND_CHECKPOINTS", InFold("checkpoints"));
  if (rows_ != nullptr) {
    for (std::string& variable : rows_->Variables(InFold(kDataFolder))) {
      all.push_back(std::move(variable));
    }
  }
  all.push_back(ProcessVariable());
  const absl::Time now = clock_.WallNow();
  const absl::Duration mono = clock_.MonotonicNow();
  if (orders_.stop_at != absl::InfiniteDuration()) {
    set("TRAIND_STOP_AT", UnixSeconds(now + (orders_.stop_at - mono)));
  }
  if (orders_.deadline != absl::InfiniteDuration()) {
    set("TRAIND_DEADLINE", UnixSeconds(now + (orders_.deadline - mono)));
  }
  set("TRAIND_STOP_FILE", InFold("stop"));
  set("TRAIND_REPORT_FD", kReportDescriptor);
  return all;
}

absl::Status ProgramTrainer::Launch(const std::vector<std::string>& command) {
  UserProgramStart start;
  start.command = Command(command);
  start.environment = Environment();
  start.folder = InFold("work");
  start.offline = spec_.network == "off";
  if (spec_.writes == "own") {
    start.writable = {InFold("work"), InFold("out"), InFold("checkpoints")};
  }
  // Between two looks of GuardDisk() a single file could fill a small disk.
  const DiskSpace space = SpaceOf(fold_dir_);
  start.largest_file = std::max(int64_t{1} << 20, space.free - HeldBack(space));
  began_epochs_ = false;
  RunningProgram::Readers readers;
  readers.output = [this](absl::string_view line) { TakeOutput(line); };
  readers.report = [this](absl::string_view line) {
    reports_ = true;
    Take(ReadReportLine(line));
  };
  ASSIGN_OR_RETURN(program_, RunningProgram::Start(start, std::move(readers), clock_));
  return absl::OkStatus();
}

void ProgramTrainer::SendStarted() {
  rank_protocol::Started started;
  started.attempt = train_.attempt;
  started.steps_per_epoch = TellsEpochs() ? 1 : kPercent;
  started.resolved_settings =
      absl::StrCat("start=", try_ + 1, " threads=", train_.threads,
                   " code=", DigestOfCode(fold_dir_).substr(0, kDigestShown),
                   " command=", absl::StrJoin(Command(spec_.command), " ").substr(0, kTailBytes));
  sink_.Send(started);
}

// ---- while it runs ----------------------------------------------------------

absl::StatusOr<Ending> ProgramTrainer::TrainUntilStopped() {
  while (true) {
    if (program_->end().has_value()) {
      ASSIGN_OR_RETURN(const bool again, BeginsAgain());
      if (!again) break;
    }
    ReadOrders();
    if (!stop_.has_value()) {
      const StopCause cause = WhyStop();
      if (cause != StopCause::kNone) BeginStop(cause);
    } else {
      Escalate();
    }
    program_->Poll(kPoll);
    if (clock_.MonotonicNow() - progress_at_ >= kProgressEvery) {
      SendProgress();
      GuardDisk();
      SaveInterim();
      KeepCheckpoints();
    }
  }
  return Ended();
}

// Whether the training program has been started now: it was only set up, or it has failed with a
// checkpoint that an earlier start may have left half.
absl::StatusOr<bool> ProgramTrainer::BeginsAgain() {
  const KeeperReport& end = *program_->end();
  if (stop_.has_value() || filled_disk_) return false;
  if (setting_up_) {
    RETURN_IF_ERROR(AfterSetup());
    return true;
  }
  const bool failed = end.exec_error == 0 && WIFEXITED(end.wait_status) &&
                      WEXITSTATUS(end.wait_status) != 0 && SignalOf(end.wait_status) == 0;
  if (!failed || try_ == 0 || train_.rank > 0 || train_.world_size > 1) return false;
  absl::StatusOr<bool> aside = checkpoints_->SetAside();
  if (!aside.ok() || !*aside) return false;  // what it says itself is the better message
  Log("warning",
      absl::StrCat("fold ", train_.fold, ": the program failed after a restart", Tail(),
                   "; its checkpoints are set aside, and it begins with the ones before"));
  ++try_;
  RETURN_IF_ERROR(StorageError(WriteFileDurably(InFold("tries"), absl::StrCat(try_ + 1))));
  tail_.clear();
  RETURN_IF_ERROR(Launch(spec_.command));
  return true;
}

void ProgramTrainer::ReadOrders() {
  if (control_.version() == orders_version_) return;
  orders_version_ = control_.version();
  const bool saved = orders_.predict || !orders_.stop;
  orders_ = control_.orders();
  // A soft stop has become a hard one: there is less time.
  if (stop_.has_value() && saved && orders_.stop && !orders_.predict) {
    stop_ = ScheduleStop(clock_.MonotonicNow(), orders_.deadline, /*saves=*/false);
  }
}

StopCause ProgramTrainer::WhyStop() const {
  if (orders_.stop) return orders_.cause == StopCause::kNone ? StopCause::kTime : orders_.cause;
  if (TellsEpochs() && orders_.epochs < spec_.epochs && done_ >= orders_.epochs) {
    return StopCause::kEpochs;
  }
  return clock_.MonotonicNow() >= orders_.stop_at ? StopCause::kTime : StopCause::kNone;
}

void ProgramTrainer::BeginStop(StopCause cause) {
  stop_cause_ = cause;
  stop_ = ScheduleStop(clock_.MonotonicNow(), orders_.deadline, !orders_.stop || orders_.predict,
                       !user_.predict.empty());
  const int file = open(InFold("stop").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file >= 0) close(file);
  program_->Order(KeeperOrder::kSoftStop);
  Log("info",
      absl::StrCat("fold ", train_.fold, ": the program was asked to stop (", Name(cause), ")"));
}

void ProgramTrainer::Escalate() {
  const absl::Duration now = clock_.MonotonicNow();
  if (!terminated_ && now >= stop_->terminate_at) {
    terminated_ = true;
    program_->Order(KeeperOrder::kTerminate);
  }
  if (!killed_ && now >= stop_->kill_at) {
    killed_ = true;
    program_->Order(KeeperOrder::kKill);
    Log("warning", absl::StrCat("fold ", train_.fold, ": the program did not end and was killed"));
  }
}

// One that fills the disk would keep traind from recording anything, of all Jobs.
void ProgramTrainer::GuardDisk() {
  const DiskSpace space = SpaceOf(fold_dir_);
  if (filled_disk_ || space.free >= HeldBack(space)) return;
  if (!FillsDisk(space, BytesBelow(fold_dir_))) return;
  filled_disk_ = true;
  program_->Order(KeeperOrder::kKill);
}

absl::StatusOr<Ending> ProgramTrainer::Ended() {
  TellLeftOut(absl::InfiniteDuration());
  const KeeperReport& end = *program_->end();
  if (filled_disk_) {
    std::error_code ignored;
    for (const char* name : {"work", "out", "checkpoints"}) fs::remove_all(InFold(name), ignored);
    return UserError(
        "the program filled the disk of the state folder; it was ended and its files "
        "were removed");
  }
  if (end.exec_error != 0) return UserError(WhyNotStarted(end));
  if (end.left_behind > 0) {
    Log("warning", absl::StrCat("fold ", train_.fold, ": ", end.left_behind,
                                " processes that the program had left were ended"));
  }
  if (stop_.has_value()) return Ending{stop_cause_, !orders_.stop || orders_.predict};
  if (end.wait_status == 0) {
    SendEpochs(Epochs());
    return Ending{StopCause::kEpochs, true};
  }
  const int signal = SignalOf(end.wait_status);
  if (signal > 0) {
    return absl::AbortedError(absl::StrCat("the program was ended by signal ", signal, " (",
                                           strsignal(signal), ")", Tail()));
  }
  return UserError(
      absl::StrCat("the program ended with exit status ", WEXITSTATUS(end.wait_status), Tail()));
}

// By a signal, so that another Attempt starts it again.
bool ProgramTrainer::WasKilled() const {
  return program_ != nullptr && program_->end().has_value() && !stop_.has_value() &&
         SignalOf(program_->end()->wait_status) > 0;
}

std::string ProgramTrainer::WhyNotStarted(const KeeperReport& end) const {
  const std::string section = user_.answers_rows ? "model.command" : "run";
  const char* const why = strerror(end.exec_error);
  switch (end.failed_step) {
    case StartStep::kOffline:
      return absl::StrCat(section, ".network: 'off' is not possible on this machine: ", why);
    case StartStep::kOwnFolders:
      return absl::StrCat(section, ".writes: 'own' is not possible on this machine, whose kernel ",
                          "has no Landlock: ", why);
    default:
      return absl::StrCat(user_.command_field, ": '", spec_.command[0],
                          "' cannot be started: ", why);
  }
}

std::string ProgramTrainer::Tail() const {
  if (tail_.empty()) return ", without a word";
  const std::string text = absl::StrJoin(tail_, " | ");
  const size_t from = text.size() > kTailBytes ? text.size() - kTailBytes : 0;
  return absl::StrCat("; its last lines: ", from > 0 ? "..." : "", text.substr(from));
}

// The training was cut: another command answers with what it has left.
void ProgramTrainer::RunPredict() {
  const absl::Status launched = Launch(user_.predict);
  if (!launched.ok()) {
    return Log("warning", absl::StrCat("model.command.predict: ", launched.message()));
  }
  bool killed = false;
  while (!program_->end().has_value()) {
    program_->Poll(kPoll);
    const absl::Duration now = clock_.MonotonicNow();
    if (!killed && now >= stop_->predict_by) {
      killed = true;
      program_->Order(KeeperOrder::kKill);
    }
    if (now - progress_at_ >= kProgressEvery) SendProgress();
  }
  const KeeperReport& end = *program_->end();
  if (killed || end.exec_error != 0 || end.wait_status != 0) {
    Log("warning", absl::StrCat("fold ", train_.fold, ": model.command.predict ",
                                killed ? "had no time left and was killed"
                                : end.exec_error != 0
                                    ? absl::StrCat("cannot be started: ", strerror(end.exec_error))
                                    : absl::StrCat("failed", Tail())));
  }
}

// ---- what it tells ----------------------------------------------------------

void ProgramTrainer::TakeOutput(absl::string_view line) {
  if (log_quota_.Takes(clock_.MonotonicNow())) {
    TellLeftOut(clock_.MonotonicNow());
    // As a line of the log, with its time; "program:2" is the second start.
    LogLine(LogLevel::kInfo, "program", static_cast<int>(try_) + 1).stream() << line;
  }
  tail_.push_back(std::string(line.substr(0, kTailBytes)));
  if (tail_.size() > kTailLines) tail_.pop_front();
  if (!reports_) Take(ReadOutputLine(line));
}

void ProgramTrainer::TellLeftOut(absl::Duration now) {
  if (const int64_t count = log_quota_.TakeLeftOut(now); count > 0) {
    Log("warning",
        absl::StrCat(count, " lines of the program's output are left out: it prints more than ",
                     LogQuota::kPerSecond, " a second"));
  }
}

void ProgramTrainer::Take(const ProgramReport& report) {
  if (setting_up_) return;
  if (report.loss.has_value()) loss_ = report.loss;
  if (report.metric.has_value()) metric_ = report.metric;
  if (report.epochs.has_value() && *report.epochs > 0) total_ = *report.epochs;
  if (!report.epoch.has_value()) return;
  const double total = total_ > 0 ? total_ : static_cast<double>(spec_.epochs);
  const bool first = !std::exchange(began_epochs_, true);
  if (TellsEpochs() && first && (*report.epoch == 0 || try_ > 0)) {
    BeginEpochs(std::min(*report.epoch, static_cast<double>(spec_.epochs)));
  } else if (TellsEpochs()) {
    done_ = std::max(done_, std::min(*report.epoch, static_cast<double>(spec_.epochs)));
    SendEpochs(std::floor(done_));
  } else if (total > 0) {
    done_ = std::max(done_, std::min(*report.epoch / total, 1.0));
  }
}

// What a program does before its first epoch, such as importing and reading, is no epoch's time,
// and neither are the epochs of an earlier start.
void ProgramTrainer::BeginEpochs(double done) {
  done_ = std::max(done_, done);
  SendEpochs(std::floor(done_), /*timed=*/false);
  epoch_at_ = clock_.MonotonicNow();
}

void ProgramTrainer::SendEpochs(double done, bool timed) {
  const int epochs = static_cast<int>(std::min(done, Epochs()));
  if (epochs <= told_epochs_) return;
  const absl::Duration now = clock_.MonotonicNow();
  rank_protocol::Epoch epoch;
  epoch.attempt = train_.attempt;
  epoch.epoch = epochs;
  epoch.step = TellsEpochs() ? epochs : kPercent;
  epoch.train_loss = epoch.val_loss = loss_.value_or(kNotTold);
  epoch.val_metric = epoch.best_metric = metric_.value_or(kNotTold);
  epoch.epoch_s = absl::ToDoubleSeconds(now - epoch_at_) / (epochs - told_epochs_);
  epoch.head_only = !timed;  // then no estimate follows from it
  sink_.Send(epoch);
  told_epochs_ = epochs;
  epoch_at_ = now;
}

// Tells the Worker, too, that a silent program is alive.
void ProgramTrainer::SendProgress() {
  progress_at_ = clock_.MonotonicNow();
  rank_protocol::Progress progress;
  progress.attempt = train_.attempt;
  progress.epoch = done_;
  progress.step = static_cast<int64_t>(TellsEpochs() ? done_ : kPercent * done_);
  progress.loss = loss_.value_or(kNotTold);
  sink_.SendProgress(progress);
}

}  // namespace traind
