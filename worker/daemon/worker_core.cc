#include "worker/daemon/worker_core.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <set>
#include <utility>

#include "common/base/job_layout.h"

namespace traind::worker {
namespace {

namespace rp = rank_protocol;

// A spare's start costs half a second of a core: not while a task starts.
constexpr absl::Duration kSpareDelay = absl::Seconds(3);

// What is left of the time for a file's answers to travel to traind.
constexpr absl::Duration kLeastTravel = absl::Seconds(1);
constexpr double kTravelShare = 0.1;

// Ids become folder names.
bool IsPlainName(const std::string& name) {
  return !name.empty() && name.size() <= 255 && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
         });
}

int64_t RemainingMs(absl::Duration at, absl::Duration now) {
  if (at == absl::InfiniteDuration()) return -1;
  return std::max<int64_t>(0, absl::ToInt64Milliseconds(at - now));
}

}  // namespace

WorkerCore::WorkerCore(WorkerCoreOptions options, std::vector<Slot> slots,
                       std::function<int64_t()> available_bytes, std::function<int()> free_port)
    : options_(std::move(options)),
      slots_(std::move(slots)),
      available_bytes_(std::move(available_bytes)),
      free_port_(std::move(free_port)),
      publish_schedule_(options_.publish) {}

// ---- from traind ------------------------------------------------------------

absl::Status WorkerCore::Check(const TaskStart& task) const {
  if (!IsPlainName(task.job)) {
    return absl::InvalidArgumentError(absl::StrCat("job \"", task.job, "\" is no name"));
  }
  if (task.kind != TaskKind::kTrain) return absl::OkStatus();
  if (task.slots.empty()) return absl::InvalidArgumentError("no slots");
  const std::set<int> distinct(task.slots.begin(), task.slots.end());
  if (distinct.size() != task.slots.size()) return absl::InvalidArgumentError("a slot twice");
  if (*distinct.begin() < 0 || *distinct.rbegin() >= static_cast<int>(slots_.size())) {
    return absl::InvalidArgumentError(absl::StrCat("slots ", *distinct.begin(), " to ",
                                                   *distinct.rbegin(), "; this Worker has ",
                                                   slots_.size()));
  }
  if (task.first_rank < 0 ||
      task.first_rank + static_cast<int>(task.slots.size()) > task.world_size) {
    return absl::InvalidArgumentError(absl::StrCat(task.slots.size(), " ranks from ",
                                                   task.first_rank, " on do not fit a world of ",
                                                   task.world_size));
  }
  if (task.rendezvous_port < 0 || task.rendezvous_port > 65'535) {
    return absl::InvalidArgumentError(
        absl::StrCat("the ranks cannot meet at port ", task.rendezvous_port));
  }
  return absl::OkStatus();
}

void WorkerCore::Start(TaskStart task, absl::Duration now) {
  const int64_t id = task.attempt;
  if (attempts_.count(id) > 0 || std::find(ended_.begin(), ended_.end(), id) != ended_.end()) {
    return;  // sent again after a reconnect
  }
  Attempt& attempt = attempts_[id];
  attempt.task = std::move(task);
  if (const absl::Status status = Check(attempt.task); !status.ok()) {
    return ReportEnded(id,
                       {AttemptEndReason::kInternal, absl::StrCat("refused: ", status.message())});
  }
  if (shutdown_) return ReportEnded(id, {AttemptEndReason::kShutdown, "the Worker is ending"});
  // A Rank that predicts a file publishes by itself; in a folder of its own nobody would see it.
  // A gang's predictions are with the Worker of rank 0.
  if (!UsesModels(attempt.task.kind) && !own_folder_ && attempt.task.first_rank == 0) {
    publish_schedule_.Started(attempt.task, now);
  }
  if (own_folder_) {
    attempt.bringing = true;
    Do(BringAction{attempt.task});
  }
  TickAttempt(attempt, now);  // its deadline may be over: no Rank is taken then
  Launch(now);
}

void WorkerCore::Brought(int64_t id, const absl::StatusOr<std::string>& spec_json,
                         absl::Duration now) {
  Attempt* attempt = FindAttempt(id);
  if (attempt == nullptr || !attempt->bringing) return;
  attempt->bringing = false;
  if (!spec_json.ok()) {
    // The user's file is not there any more, or cannot be read.
    const bool data =
        absl::IsNotFound(spec_json.status()) || absl::IsPermissionDenied(spec_json.status());
    const TaskKind kind = attempt->task.kind;
    const bool reads = kind == TaskKind::kPrepare || kind == TaskKind::kPredict;
    const AttemptEndReason reason =
        data && reads ? AttemptEndReason::kDataError : AttemptEndReason::kInternal;
    return End(*attempt,
               {reason, absl::StrCat("cannot fetch its files: ", spec_json.status().message())},
               now);
  }
  attempt->task.spec_json = *spec_json;
  Launch(now);
}

void WorkerCore::Stop(int64_t id, StopMode mode, StopReason reason, const std::string& why,
                      absl::Duration now) {
  Attempt* attempt = FindAttempt(id);
  if (attempt == nullptr || attempt->end) return;
  if (mode == StopMode::kAbort) {
    const bool cancelled = reason == StopReason::kUserCancelled;
    return End(*attempt,
               {cancelled ? AttemptEndReason::kCancelledByUser : AttemptEndReason::kStale, why},
               now);
  }
  const bool prepare = attempt->task.kind == TaskKind::kPrepare;
  // The floor is what a Job that finishes early needs.
  if (prepare && mode == StopMode::kPredict) return;
  if (attempt->stop == StopMode::kDrop) return;
  attempt->stop = mode;
  attempt->stop_reason = reason;
  attempt->stop_why = why;
  if (prepare || attempt->state != Attempt::kRunning) {
    return End(*attempt, Outcome(*attempt), now);
  }
  SendStop(*attempt, mode == StopMode::kPredict, reason);
  if (mode == StopMode::kDrop) attempt->drop_by = now + options_.drop_grace;
}

void WorkerCore::Replan(int64_t id, int epochs, double row_share, absl::Duration stop_at,
                        std::optional<absl::Duration> deadline_at, bool plan_cut,
                        absl::Duration now) {
  Attempt* attempt = FindAttempt(id);
  if (attempt == nullptr || attempt->end) return;
  TaskStart& task = attempt->task;
  if (epochs > 0) task.epochs = epochs;
  if (row_share > 0) task.row_share = row_share;
  if (stop_at != absl::InfiniteDuration()) {
    task.stop_at = stop_at;
    attempt->reminded = false;
  }
  if (deadline_at) task.deadline_at = *deadline_at;
  publish_schedule_.Replanned(task.job, plan_cut, deadline_at);
  if (attempt->state != Attempt::kRunning || task.kind == TaskKind::kPrepare) return;
  const int64_t remaining_ms = deadline_at ? RemainingOf(task, now) : -1;
  for (const ProcessId process : attempt->processes) {
    if (process == 0) continue;
    Do(SendAction{process,
                  rp::Replan{id, epochs, RemainingMs(stop_at, now), remaining_ms, row_share}});
  }
}

void WorkerCore::Meet(int64_t id, const std::string& host, int port, absl::Duration now) {
  Attempt* attempt = FindAttempt(id);
  if (attempt == nullptr || attempt->end || attempt->ready_port == 0) return;
  if (!AwaitsMeeting(attempt->task)) return;  // it knows
  attempt->task.rendezvous_host = host;
  attempt->task.rendezvous_port = port;
  if (const absl::Status status = Check(attempt->task); !status.ok() || port == 0) {
    return End(*attempt, {AttemptEndReason::kInternal, absl::StrCat("no port to meet at: ", port)},
               now);
  }
  SendTasksIfGathered(*attempt, now);
}

void WorkerCore::Ask(rp::Rows rows) {
  Attempt* attempt = FindAttempt(rows.attempt);
  if (attempt != nullptr && attempt->state == Attempt::kRunning && !attempt->end &&
      attempt->task.kind == TaskKind::kServe && attempt->processes[0] != 0) {
    attempt->questions.insert(rows.request);
    return Do(SendAction{attempt->processes[0], std::move(rows)});
  }
  Refuse(rows.attempt, rows.request, absl::StatusCode::kUnavailable,
         "the models are not loaded (yet, or any more)");
}

void WorkerCore::TooLong(const rp::Rows& rows) {
  if (Attempt* attempt = FindAttempt(rows.attempt)) attempt->questions.erase(rows.request);
  Refuse(rows.attempt, rows.request, absl::StatusCode::kInvalidArgument,
         "rows: they are too long for one request; send fewer at once");
}

void WorkerCore::Refuse(int64_t attempt, uint64_t request, absl::StatusCode code, std::string why) {
  rp::Answered answer;
  answer.attempt = attempt;
  answer.request = request;
  answer.code = absl::StrCat(static_cast<int>(code));
  answer.message = std::move(why);
  Do(AnswerAction{std::move(answer)});
}

void WorkerCore::SetDataRoots(std::vector<std::string> roots) {
  data_roots_ = std::move(roots);
  // What PREPARE made of the files, and files that were brought here.
  if (!data_roots_.empty()) data_roots_.push_back(options_.state_dir);
}

void WorkerCore::Connected(absl::Duration) {
  publish_schedule_.Connected();
  // traind may have forgotten, or not have heard.
  for (const auto& [id, attempt] : attempts_) {
    if (attempt.ready_port > 0 && !attempt.end) Do(GangReadyAction{id, attempt.ready_port});
  }
}

void WorkerCore::Disconnected(absl::Duration now) { publish_schedule_.Disconnected(now); }

void WorkerCore::Shutdown(absl::Duration grace, absl::Duration now) {
  if (!shutdown_) shutdown_by_ = now + grace;
  shutdown_ = true;
  shutdown_by_ = std::min(shutdown_by_, now + grace);
  std::vector<int64_t> ids;
  for (const auto& [id, attempt] : attempts_) ids.push_back(id);
  for (const int64_t id : ids) {
    Attempt& attempt = attempts_.at(id);
    if (attempt.end) continue;
    attempt.drop_by = std::min(attempt.drop_by, shutdown_by_);
    if (attempt.state != Attempt::kRunning || attempt.task.kind == TaskKind::kPrepare) {
      End(attempt, Outcome(attempt), now);
    } else if (attempt.stop != StopMode::kDrop) {
      attempt.stop = StopMode::kDrop;
      SendStop(attempt, /*predict=*/false, StopReason::kShutdown);
    }
  }
  Tick(now, false);
}

// ---- launching --------------------------------------------------------------

WorkerCore::Attempt* WorkerCore::FindAttempt(int64_t attempt) {
  const auto found = attempts_.find(attempt);
  return found == attempts_.end() ? nullptr : &found->second;
}

bool WorkerCore::SlotsFree(const Attempt& attempt) const {
  for (const auto& [id, other] : attempts_) {
    if (other.state != Attempt::kKilling || other.task.kind != TaskKind::kTrain) continue;
    for (const int slot : other.task.slots) {
      const std::vector<int>& wanted = attempt.task.slots;
      if (std::find(wanted.begin(), wanted.end(), slot) != wanted.end()) return false;
    }
  }
  return true;
}

void WorkerCore::Launch(absl::Duration now) {
  if (shutdown_) return;
  // First floors go before better ones: who has one no longer holds a place, but
  // there is an end to how many improve theirs at once.
  int preparing = 0, improving = 0;
  std::vector<Attempt*> prepares, trains, inference;
  for (auto& [id, attempt] : attempts_) {
    if (attempt.bringing) continue;
    const bool prepare = attempt.task.kind == TaskKind::kPrepare;
    if (UsesModels(attempt.task.kind)) {
      if (attempt.state == Attempt::kWaiting) inference.push_back(&attempt);
    } else if (attempt.state == Attempt::kWaiting) {
      (prepare ? prepares : trains).push_back(&attempt);
    } else if (prepare && !Stalls(attempt, now)) {
      ++(attempt.floor_saved ? improving : preparing);
    }
  }
  std::stable_sort(prepares.begin(), prepares.end(), [](const Attempt* a, const Attempt* b) {
    return a->task.deadline_at < b->task.deadline_at;
  });
  for (Attempt* attempt : prepares) {
    const int places = std::max(2, options_.cores);
    if (preparing >= places || improving + preparing >= 4 * places) break;
    ++preparing;
    LaunchPrepare(*attempt, now);
  }
  LaunchInference(std::move(inference), now);
  for (Attempt* attempt : trains) {
    if (SlotsFree(*attempt)) LaunchTrain(*attempt, now);
  }
}

bool WorkerCore::Stalls(const Attempt& attempt, absl::Duration now) const {
  return attempt.watchdog && now >= attempt.watchdog->heard_at() + options_.prepare_stall;
}

// Serving Ranks mostly wait; of those that predict files there are as many as cores.
void WorkerCore::LaunchInference(std::vector<Attempt*> waiting, absl::Duration now) {
  int predicting = 0;
  for (const auto& [id, attempt] : attempts_) {
    predicting +=
        attempt.task.kind == TaskKind::kPredict && attempt.state != Attempt::kWaiting ? 1 : 0;
  }
  std::stable_sort(waiting.begin(), waiting.end(), [](const Attempt* a, const Attempt* b) {
    return a->task.deadline_at < b->task.deadline_at;
  });
  for (Attempt* attempt : waiting) {
    const bool predict = attempt->task.kind == TaskKind::kPredict;
    if (predict && predicting >= std::max(2, options_.cores)) continue;
    predicting += predict ? 1 : 0;
    attempt->state = Attempt::kGathering;
    const ProcessId id = ClaimProcess(ProgramFor(attempt->task.kind, attempt->task.model), -1, now);
    Process& process = processes_.at(id);
    process.attempt = attempt->task.attempt;
    process.rank = 0;
    attempt->processes = {id};
    Do(LogFileAction{id, RankLogPath(attempt->task.job, attempt->task.attempt, 0)});
    SendTasksIfGathered(*attempt, now);
  }
}

void WorkerCore::LaunchPrepare(Attempt& attempt, absl::Duration now) {
  const TaskStart& task = attempt.task;
  const ProcessId id = Spawn(ProgramFor(task.kind, task.model), -1, now);
  Process& process = processes_.at(id);
  process.state = Process::kWorking;
  process.attempt = task.attempt;
  attempt.processes = {id};
  attempt.state = Attempt::kRunning;
  attempt.watchdog.emplace(options_.min_silence, options_.prepare_silence, now);
  Do(LogFileAction{id, RankLogPath(task.job, task.attempt, 0)});
  Do(SendAction{
      id, rp::Prepare{task.attempt, task.job, options_.state_dir, task.spec_json,
                      RemainingMs(task.deadline_at - options_.deadline_margin, now), data_roots_}});
}

void WorkerCore::LaunchTrain(Attempt& attempt, absl::Duration now) {
  TaskStart& task = attempt.task;
  if (task.rendezvous_host.empty()) task.rendezvous_host = "127.0.0.1";
  if (task.world_size > 1 && task.rendezvous_port == 0 && !AwaitsMeeting(task)) {
    task.rendezvous_port = free_port_();
    if (task.rendezvous_port == 0) return EndWithoutPort(attempt, now);
  }
  attempt.state = Attempt::kGathering;
  const Program& program = ProgramFor(task.kind, task.model);
  for (size_t i = 0; i < task.slots.size(); ++i) {
    const ProcessId id = ClaimProcess(program, IsCuda() ? task.slots[i] : -1, now);
    Process& process = processes_.at(id);
    process.attempt = task.attempt;
    process.rank = task.first_rank + static_cast<int>(i);
    attempt.processes.push_back(id);
    Do(LogFileAction{id, RankLogPath(task.job, task.attempt, process.rank)});
  }
  next_spare_at_ = std::max(next_spare_at_, now + kSpareDelay);
  SendTasksIfGathered(attempt, now);
}

void WorkerCore::EndWithoutPort(Attempt& attempt, absl::Duration now) {
  End(attempt, {AttemptEndReason::kInternal, "no free port for the ranks to meet at"}, now);
}

ProcessId WorkerCore::ClaimProcess(const Program& program, int gpu, absl::Duration now) {
  for (const Process::State wanted : {Process::kIdle, Process::kStarting}) {
    for (const auto& [id, process] : processes_) {
      if (process.program == &program && process.state == wanted && process.attempt == 0 &&
          process.slot == gpu) {
        return id;
      }
    }
  }
  return Spawn(program, gpu, now);
}

ProcessId WorkerCore::Spawn(const Program& program, int gpu, absl::Duration now) {
  const ProcessId id = next_process_++;
  Process& process = processes_[id];
  process.program = &program;
  process.slot = gpu;
  process.since = now;
  Do(SpawnAction{id, &program, gpu});
  return id;
}

void WorkerCore::SendTasksIfGathered(Attempt& attempt, absl::Duration now) {
  if (attempt.state != Attempt::kGathering) return;
  for (const ProcessId id : attempt.processes) {
    if (processes_.at(id).state != Process::kIdle) return;
  }
  if (AwaitsMeeting(attempt.task)) {
    if (attempt.ready_port > 0) return;
    attempt.ready_port = free_port_();
    if (attempt.ready_port == 0) return EndWithoutPort(attempt, now);
    return Do(GangReadyAction{attempt.task.attempt, attempt.ready_port});
  }
  attempt.state = Attempt::kRunning;
  for (size_t i = 0; i < attempt.processes.size(); ++i) {
    Process& process = processes_.at(attempt.processes[i]);
    process.state = Process::kWorking;
    process.since = now;
    Do(SendAction{attempt.processes[i], TaskMessage(attempt, static_cast<int>(i), now)});
  }
  if (attempt.task.first_rank == 0) {
    attempt.watchdog.emplace(options_.min_silence, options_.start_silence, now);
  }
}

int64_t WorkerCore::RemainingOf(const TaskStart& task, absl::Duration now) const {
  absl::Duration end = task.deadline_at - options_.deadline_margin;
  // The answers to a file still have to travel then.
  if (own_folder_ && task.kind == TaskKind::kPredict && end != absl::InfiniteDuration()) {
    end -= std::max(kLeastTravel, kTravelShare * (end - now));
  }
  return RemainingMs(end, now);
}

rp::ToProcess WorkerCore::TaskMessage(const Attempt& attempt, int index, absl::Duration now) const {
  const TaskStart& task = attempt.task;
  const int64_t remaining_ms = RemainingOf(task, now);
  if (task.kind == TaskKind::kPredict) {
    return rp::Predict{task.attempt, task.job,     options_.state_dir, task.spec_json,
                       IdleCores(),  remaining_ms, data_roots_};
  }
  if (task.kind == TaskKind::kServe) {
    return rp::Serve{task.attempt, task.job, options_.state_dir, task.spec_json, 1, remaining_ms};
  }
  return TrainMessage(attempt, index, now);
}

// A CPU slot is a core; GPUs share the cores.
int WorkerCore::CoresOfSlot() const {
  return IsCuda() ? std::max(1, options_.cores / static_cast<int>(slots_.size())) : 1;
}

// For a task without slots: the cores of the slots that have no fold, shared with its like. At
// least one; folds that begin later have to share theirs.
int WorkerCore::IdleCores() const {
  int slots = static_cast<int>(slots_.size()), tasks = 0;
  for (const auto& [id, attempt] : attempts_) {
    slots -= static_cast<int>(attempt.task.slots.size());
    tasks += attempt.task.kind == TaskKind::kPredict && attempt.state != Attempt::kWaiting;
  }
  return std::max(1, slots * CoresOfSlot() / std::max(1, tasks));
}

rp::Train WorkerCore::TrainMessage(const Attempt& attempt, int index, absl::Duration now) const {
  const TaskStart& task = attempt.task;
  rp::Train train;
  train.attempt = task.attempt;
  train.job = task.job;
  train.state_dir = options_.state_dir;
  train.spec_json = task.spec_json;
  train.table = task.table;
  train.fold = task.fold;
  train.trial = task.trial;
  train.seed = task.seed;
  train.files_travel = own_folder_;
  train.rank = task.first_rank + index;
  train.world_size = task.world_size;
  train.rendezvous.host = task.rendezvous_host;
  train.rendezvous.port = task.rendezvous_port;
  train.rendezvous.timeout_ms = absl::ToInt64Milliseconds(options_.exchange_timeout);
  train.device = IsCuda() ? "cuda" : "cpu";
  train.threads = CoresOfSlot();
  train.loader_threads = options_.loader_threads;
  train.epochs = task.epochs;
  train.row_share = task.row_share;
  train.batch = task.batch;
  train.precision = task.precision;
  train.resume = task.resume;
  train.stop_ms = RemainingMs(task.stop_at, now);
  train.remaining_ms = RemainingMs(task.deadline_at - options_.deadline_margin, now);
  train.checkpoint_every_ms = absl::ToInt64Milliseconds(task.checkpoint_every);
  return train;
}

}  // namespace traind::worker
