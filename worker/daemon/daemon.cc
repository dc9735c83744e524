#include "worker/daemon/daemon.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "common/base/container.h"
#include "common/base/disk_guard.h"
#include "common/base/durable_file.h"
#include "common/base/engine_version.h"
#include "common/base/host_name.h"
#include "common/base/local_address.h"
#include "common/base/log.h"
#include "common/base/reserved_port.h"
#include "worker/daemon/file_client.h"
#include "worker/daemon/process_work.h"
#include "worker/daemon/report_conversion.h"

namespace traind::worker {
namespace {

constexpr absl::Duration kWelcomeWait = absl::Seconds(10);
constexpr absl::Duration kFlushWait = absl::Seconds(1);
constexpr absl::Duration kLookAtWork = absl::Seconds(1);
constexpr absl::Duration kAckTime = absl::Milliseconds(100);

std::string RandomId() {
  const absl::StatusOr<std::string> uuid = ReadFile("/proc/sys/kernel/random/uuid");
  return uuid.ok() ? std::string(absl::StripAsciiWhitespace(*uuid)) : absl::StrCat(getpid());
}

WorkerCoreOptions WithStateDir(const DaemonOptions& options) {
  WorkerCoreOptions core = options.core;
  core.state_dir = options.state_dir;
  return core;
}

void Log(const LogAction& log) {
  switch (log.level) {
    case LogAction::kInfo:
      TRAIND_LOG(INFO) << log.text;
      break;
    case LogAction::kWarning:
      TRAIND_LOG(WARNING) << log.text;
      break;
    case LogAction::kError:
      TRAIND_LOG(ERROR) << log.text;
      break;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Create(DaemonOptions options,
                                                       std::vector<Slot> slots,
                                                       PublishFunction publish) {
  auto client =
      CoordinatorClient::Connect(options.coordinator, {options.tls_dir, options.token_file, true});
  if (!client.ok()) return client.status();
  std::unique_ptr<FileCarrier> carrier;
  if (!options.standalone && !absl::StartsWith(options.coordinator, "unix:")) {
    // The client outlives the carrier, which has the files.
    auto files = ConnectFiles(options.coordinator, {options.tls_dir, options.token_file, true},
                              [raw = client->get()] { return raw->current(); });
    if (!files.ok()) return files.status();
    carrier = std::make_unique<FileCarrier>(options.state_dir, *std::move(files),
                                            options.own_folder_bytes);
  }
  return std::unique_ptr<Daemon>(new Daemon(std::move(options), std::move(slots),
                                            std::move(publish), *std::move(client),
                                            std::move(carrier)));
}

Daemon::Daemon(DaemonOptions options, std::vector<Slot> slots, PublishFunction publish,
               std::unique_ptr<CoordinatorClient> client, std::unique_ptr<FileCarrier> carrier)
    : options_(std::move(options)),
      slots_(std::move(slots)),
      worker_id_(absl::StrCat(HostName(), "-", Sha256Hex(options_.state_dir).substr(0, 8))),
      boot_id_(RandomId()),
      timer_fd_(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)),
      core_(
          WithStateDir(options_), slots_, [] { return AvailableMemory(); },
          [port = options_.port] { return PortIsFree(port) ? port : ReservePort(); }),
      client_(std::move(client)),
      carrier_(std::move(carrier)),
      compared_(carrier_ == nullptr),
      publisher_(std::move(publish)),
      memory_(options_.out_of_memory_kills),
      started_at_(clock_.MonotonicNow()),
      alone_since_(started_at_),
      idle_since_(started_at_) {
  constexpr absl::Duration kSampleEvery = absl::Seconds(1);
  std::vector<std::string> gpus;
  for (const Slot& slot : slots_) {
    if (!slot.uuid.empty()) gpus.push_back(slot.uuid);
  }
  if (!gpus.empty()) sampler_ = std::make_unique<DeviceSampler>(std::move(gpus), kSampleEvery);
}

Daemon::~Daemon() { close(timer_fd_); }

absl::Status Daemon::Run() {
  core_.Disconnected(clock_.MonotonicNow());
  while (true) {
    if (const absl::Status status = Turn(); !status.ok()) return status;
    const absl::Duration now = clock_.MonotonicNow();
    if (core_.done()) return FlushAndEnd();
    if (IdleForTooLong(now)) {
      TRAIND_LOG(INFO) << "no work and no traind for " << absl::FormatDuration(options_.idle_exit)
                       << "; ending";
      Leave(options_.stop_grace, now);
      Act(now);
    } else if (const std::string why = WhyLeave(now); !why.empty()) {
      TRAIND_LOG(INFO) << why << "; ending";
      Leave(options_.stop_grace, now);
      Act(now);
    }
  }
}

absl::Status Daemon::Turn() {
  if (const absl::Status status = WaitForNews(); !status.ok()) return status;
  const absl::Duration now = clock_.MonotonicNow();
  ReadChildren(now);
  HandleCoordinatorEvents(now);
  HandlePublished(now);
  HandleTransfers(now);
  LookAtWork(now);
  ReadResources(now);
  core_.Tick(now, outbox_.Waiting(now) >= kAckTime);
  Act(now);
  Heartbeat(now);
  CheckStream(now);
  return absl::OkStatus();
}

absl::Duration Daemon::NextWakeup(absl::Duration now) const {
  if (more_lines_) return now;
  absl::Duration next = std::min(core_.NextWakeup(), next_heartbeat_);
  for (const auto& [id, running] : children_) {
    if (!running.given_up) next = std::min(next, running.closed_at + kExitAfterClose);
  }
  if (!core_.Watched().empty()) next = std::min(next, look_at_work_);
  if (!core_.Training().empty()) next = std::min(next, read_resources_);
  if (!outbox_.empty()) {
    const absl::Duration since = now - outbox_.Waiting(now);
    if (now < since + kAckTime) next = std::min(next, since + kAckTime);
    if (connected_) next = std::min(next, since + lease_);
  }
  if (stream_ != 0 && !connected_) next = std::min(next, opened_at_ + kWelcomeWait);
  if (options_.standalone && !connected_ && !core_.has_work()) {
    next = std::min(next, alone_since_ + options_.idle_exit);
  }
  if (!core_.leaving()) next = std::min(next, LeaveAt());
  return next;
}

absl::Status Daemon::WaitForNews() {
  const absl::Duration now = clock_.MonotonicNow();
  const absl::Duration next = NextWakeup(now);
  // A timer on the clock that the deadlines are on: it also fires after a suspend.
  itimerspec timer = {};
  if (next != absl::InfiniteDuration()) {
    timer.it_value = absl::ToTimespec(std::max(next, absl::Nanoseconds(1)));
  }
  timerfd_settime(timer_fd_, TFD_TIMER_ABSTIME, &timer, nullptr);
  std::vector<pollfd> fds = {{timer_fd_, POLLIN, 0},
                             {client_->events().fd(), POLLIN, 0},
                             {publisher_.results().fd(), POLLIN, 0}};
  if (options_.stop_fd >= 0) fds.push_back({options_.stop_fd, POLLIN, 0});
  if (carrier_ != nullptr) fds.push_back({carrier_->results().fd(), POLLIN, 0});
  for (const auto& [id, running] : children_) {
    Child& child = *running.child;
    fds.push_back({child.exit_fd(), POLLIN, 0});
    if (child.stderr_fd() >= 0) fds.push_back({child.stderr_fd(), POLLIN, 0});
    if (running.closed_at != absl::InfiniteDuration()) continue;
    const bool unwritten = child.channel().HasUnwritten();
    fds.push_back(
        {child.channel().read_fd(), static_cast<short>(unwritten ? POLLIN | POLLOUT : POLLIN), 0});
  }
  if (poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) {
    return ErrnoStatus(errno, "poll");
  }
  uint64_t expirations;
  [[maybe_unused]] const ssize_t got = read(timer_fd_, &expirations, sizeof(expirations));
  if (options_.stop_fd >= 0 && (fds[3].revents & POLLIN) != 0) {
    char signal[128];
    [[maybe_unused]] const ssize_t read_bytes = read(options_.stop_fd, signal, sizeof(signal));
    TRAIND_LOG(INFO) << "told to stop";
    Leave(options_.stop_grace, clock_.MonotonicNow());
  }
  return absl::OkStatus();
}

// ---- traind -----------------------------------------------------------------

void Daemon::HandleCoordinatorEvents(absl::Duration now) {
  for (const CoordinatorClient::Event& event : client_->events().TakeAll()) {
    switch (event.kind) {
      case CoordinatorClient::Event::kOpened:
        stream_ = event.stream;
        opened_at_ = now;
        if (compared_) {
          SendHello();
        } else {
          carrier_->Compare();
        }
        break;
      case CoordinatorClient::Event::kMessage:
        if (event.stream == stream_) HandleMessage(event.message, now);
        break;
      case CoordinatorClient::Event::kClosed:
        if (event.stream != stream_) break;
        if (connected_) {
          TRAIND_LOG(WARNING) << "lost traind: " << event.why << "; "
                              << core_.RunningAttempts().size() << " attempts go on";
        } else if (event.why != refused_) {
          // It is tried again and again; one line tells of all with the same cause.
          TRAIND_LOG(WARNING) << "cannot join traind: " << event.why << "; trying again";
        }
        refused_ = connected_ ? "" : event.why;
        stream_ = 0;
        connected_ = false;
        next_heartbeat_ = absl::InfiniteDuration();
        core_.Disconnected(now);
        break;
    }
  }
}

void Daemon::SendHello() {
  v1::WorkerMessage message;
  v1::Hello& hello = *message.mutable_hello();
  hello.set_worker_id(worker_id_);
  hello.set_boot_id(boot_id_);
  hello.set_hostname(HostName());
  hello.set_pid(getpid());
  hello.set_version(kTraindVersion);
  for (size_t i = 0; i < slots_.size(); ++i) {
    *hello.add_slots() = SlotToProto(slots_[i], static_cast<int>(i));
  }
  for (const int64_t attempt : RunningAttempts()) hello.add_running_attempts(attempt);
  hello.set_engine(kEngineVersion);
  hello.set_own_folder(own_folder_);
  hello.set_address(Address());
  hello.set_lent_as(options_.lent_as);
  hello.mutable_labels()->insert(options_.labels.begin(), options_.labels.end());
  hello.set_epoch(epoch_);
  client_->Send(stream_, std::move(message), /*may_drop=*/false);
}

// Each time anew: the machine may have another one than before.
std::string Daemon::Address() const {
  if (!options_.address.empty() || absl::StartsWith(options_.coordinator, "unix:")) {
    return options_.address;
  }
  const absl::StatusOr<std::string> address =
      LocalAddressTowards(SplitAddresses(options_.coordinator)[client_->current()]);
  if (address.ok()) return *address;
  TRAIND_LOG(WARNING) << "no gang spans this Worker and others: " << address.status().message();
  return "";
}

void Daemon::HandleMessage(const v1::CoordinatorMessage& message, absl::Duration now) {
  switch (message.message_case()) {
    case v1::CoordinatorMessage::kWelcome: {
      const v1::Welcome& welcome = message.welcome();
      if (welcome.epoch() < epoch_) {
        TRAIND_LOG(WARNING) << "traind " << welcome.coordinator_id() << " is of epoch "
                            << welcome.epoch() << ", but epoch " << epoch_
                            << " has begun; trying elsewhere";
        client_->CloseStream(stream_, /*elsewhere=*/true);
        return;
      }
      epoch_ = welcome.epoch();
      if (welcome.lease_ms() > 0) lease_ = absl::Milliseconds(welcome.lease_ms());
      if (welcome.heartbeat_ms() > 0) heartbeat_every_ = absl::Milliseconds(welcome.heartbeat_ms());
      connected_ = true;
      // A traind that finds no room ends its streams, so each new one is a chance to make some.
      for (const std::string& fold :
           ClearFilledDisk(options_.state_dir, SpaceOf(options_.state_dir))) {
        TRAIND_LOG(WARNING) << "the disk is full; removed what a program that is dead had left in "
                            << fold;
      }
      next_heartbeat_ = now;
      core_.SetDataRoots({welcome.data_roots().begin(), welcome.data_roots().end()});
      core_.Connected(now);
      TRAIND_LOG(INFO) << "joined traind " << welcome.coordinator_id() << "; " << outbox_.size()
                       << " facts to send again";
      outbox_.Reset(now);
      if (core_.leaving()) Heartbeat(now);  // first, as in Leave
      for (v1::WorkerMessage& fact : outbox_.Unacked()) {
        client_->Send(stream_, std::move(fact), /*may_drop=*/false);
      }
      break;
    }
    case v1::CoordinatorMessage::kAck:
      outbox_.Ack(message.ack().sequence());
      break;
    case v1::CoordinatorMessage::kStart:
      core_.Start(TaskFromProto(message.start(), now), now);
      break;
    case v1::CoordinatorMessage::kStop:
      core_.Stop(message.stop().attempt(), StopModeFromProto(message.stop().mode()),
                 StopReasonFromProto(message.stop().reason()), message.stop().why(), now);
      break;
    case v1::CoordinatorMessage::kMeet:
      core_.Meet(message.meet().attempt(), message.meet().host(), message.meet().port(), now);
      break;
    case v1::CoordinatorMessage::kReplan: {
      const v1::ReplanAttempt& replan = message.replan();
      std::optional<absl::Duration> deadline_at;
      if (replan.has_remaining_ms()) deadline_at = MomentFromMs(replan.remaining_ms(), now);
      core_.Replan(replan.attempt(), replan.epochs(), replan.row_share(),
                   MomentFromMs(replan.stop_ms(), now), deadline_at, replan.plan_cut(), now);
      break;
    }
    case v1::CoordinatorMessage::kRows:
      core_.Ask(RowsFromProto(message.rows()));
      break;
    case v1::CoordinatorMessage::kShutdown:
      TRAIND_LOG(INFO) << "traind stops";
      Leave(message.shutdown().grace_ms() > 0 ? absl::Milliseconds(message.shutdown().grace_ms())
                                              : options_.stop_grace,
            now);
      break;
    case v1::CoordinatorMessage::MESSAGE_NOT_SET:
      break;  // of a newer traind
  }
}

void Daemon::Report(v1::WorkerMessage message, bool is_fact, absl::Duration now) {
  if (is_fact) {
    message = outbox_.Add(std::move(message), now);
  } else if (!connected_) {
    return;
  }
  // Before Welcome facts wait: it is what has them sent.
  if (connected_) client_->Send(stream_, std::move(message), !is_fact);
}

void Daemon::Heartbeat(absl::Duration now) {
  if (!connected_ || now < next_heartbeat_) return;
  next_heartbeat_ = now + heartbeat_every_;
  v1::WorkerMessage message;
  v1::Heartbeat& heartbeat = *message.mutable_heartbeat();
  for (const int64_t attempt : RunningAttempts()) heartbeat.add_running_attempts(attempt);
  heartbeat.set_warm_ranks(core_.WarmRanks());
  heartbeat.set_leaving(core_.leaving());
  AddDeviceFigures(heartbeat);
  // A fold's Progress may fill the queue at any time; what a heartbeat says must not wait for
  // the next one.
  client_->Send(stream_, std::move(message), /*may_drop=*/false);
}

void Daemon::CheckStream(absl::Duration now) {
  if (stream_ == 0) return;
  const bool unwelcome = !connected_ && now >= opened_at_ + kWelcomeWait;
  const bool deaf = connected_ && outbox_.Waiting(now) >= lease_;
  if (!unwelcome && !deaf) return;
  TRAIND_LOG(WARNING) << "traind does not answer; trying again";
  client_->CloseStream(stream_);
  // kClosed follows; meanwhile this must not come up again.
  opened_at_ = now;
  outbox_.Reset(now);
}

void Daemon::HandlePublished(absl::Duration now) {
  for (PublishThread::Result& result : publisher_.results().TakeAll()) {
    core_.Published(result.job, result.prediction, now);
  }
}

// ---- a state folder of its own ----------------------------------------------

void Daemon::HandleTransfers(absl::Duration now) {
  if (carrier_ == nullptr) return;
  for (FileCarrier::Result& result : carrier_->results().TakeAll()) {
    if (result.kind == FileCarrier::Result::kCompared) {
      HandleComparison(result);
      continue;
    }
    if (!result.status.ok()) {
      TRAIND_LOG(WARNING) << "files of attempt " << result.attempt << ": " << result.status;
    }
    if (result.kind == FileCarrier::Result::kBrought) {
      TellFacts(waiting_.Brought(result.attempt, std::move(result.names), result.bytes, now), now);
      core_.Brought(result.attempt,
                    result.status.ok() ? absl::StatusOr<std::string>(std::move(result.spec_json))
                                       : result.status,
                    now);
      continue;
    }
    // Before the end of the Attempt is told, which asks what it has answered.
    if (result.published > 0) {
      Report(PublishedToProto({result.job, result.published}), /*is_fact=*/true, now);
    }
    TellFacts(waiting_.Sent(result.attempt, result.status.ok(), result.bytes, now), now);
    if (const auto next = waiting_.NextSend(result.attempt, now)) carrier_->Send(*next);
  }
}

void Daemon::HandleComparison(const FileCarrier::Result& result) {
  if (compared_) return;
  // A traind without the service shares its folder with all of its Workers.
  if (!result.status.ok() && !absl::IsUnimplemented(result.status)) {
    TRAIND_LOG(WARNING) << "cannot ask traind whether the state folder is shared: "
                        << result.status.message();
    client_->CloseStream(stream_);
    return;
  }
  compared_ = true;
  own_folder_ = result.status.ok() && !result.shared;
  if (own_folder_) {
    core_.KeepOwnFolder();
    TRAIND_LOG(INFO) << "traind does not see " << options_.state_dir << ": files travel";
  }
  if (stream_ != 0) SendHello();
}

void Daemon::ReportFact(ReportAction fact, absl::Duration now) {
  if (!own_folder_) return TellFacts({std::move(fact)}, now);
  const int64_t attempt = fact.attempt;
  if (std::holds_alternative<Ended>(fact.fact)) carrier_->StopBringing(attempt);
  // No fact tells of a program's checkpoints: they are looked for as often as it tells how far it
  // is, and at its end.
  const SendRequest* const files = waiting_.RequestOf(attempt);
  const bool look = std::holds_alternative<facts::Progress>(fact.fact) ||
                    std::holds_alternative<Ended>(fact.fact);
  if (look && files != nullptr && !files->program_pack.empty()) carrier_->SendProgramPack(*files);
  TellFacts(waiting_.Add(std::move(fact)), now);
  if (const auto next = waiting_.NextSend(attempt, now)) carrier_->Send(*next);
}

void Daemon::TellFacts(const std::vector<ReportAction>& facts, absl::Duration now) {
  for (const ReportAction& fact : facts) {
    Report(ReportToProto(fact), !std::holds_alternative<facts::Progress>(fact.fact), now);
    if (own_folder_ && std::holds_alternative<Ended>(fact.fact)) {
      carrier_->Finish(fact.attempt, waiting_.Jobs());
    }
  }
}

std::vector<int64_t> Daemon::RunningAttempts() const {
  std::vector<int64_t> running = core_.RunningAttempts();
  for (const int64_t attempt : waiting_.Attempts()) {
    if (std::find(running.begin(), running.end(), attempt) == running.end()) {
      running.push_back(attempt);
    }
  }
  return running;
}

void Daemon::LookAtWork(absl::Duration now) {
  if (now < look_at_work_) return;
  look_at_work_ = now + kLookAtWork;
  memory_.Look();
  for (const ProcessId id : core_.Watched()) {
    const auto found = children_.find(id);
    if (found == children_.end()) continue;
    Running& running = found->second;
    const int64_t work = WorkOf(running.child->pid());
    if (work < running.work + kSignOfWork) continue;
    running.work = work;
    core_.Worked(id, now);
  }
}

// ---- what the core wants done -----------------------------------------------

void Daemon::Act(absl::Duration now) {
  // An action may bring news at once (a program that does not start).
  for (std::vector<Action> actions = core_.TakeActions(); !actions.empty();
       actions = core_.TakeActions()) {
    for (Action& action : actions) Perform(action, now);
  }
}

void Daemon::Perform(Action& action, absl::Duration now) {
  if (const auto* spawn = std::get_if<SpawnAction>(&action)) {
    Spawn(*spawn, now);
  } else if (const auto* send = std::get_if<SendAction>(&action)) {
    SendToChild(*send, now);
  } else if (const auto* kill = std::get_if<KillAction>(&action)) {
    if (const auto found = children_.find(kill->process); found != children_.end()) {
      found->second.child->Kill();
    }
  } else if (const auto* log = std::get_if<LogAction>(&action)) {
    Log(*log);
  } else if (const auto* log = std::get_if<LogFileAction>(&action)) {
    if (const auto found = children_.find(log->process); found != children_.end()) {
      found->second.child->LogTo(
          log->path.empty() ? "" : absl::StrCat(options_.state_dir, "/", log->path));
    }
  } else if (auto* publish = std::get_if<PublishAction>(&action)) {
    publish->request.state_dir = options_.state_dir;
    publisher_.Publish(std::move(publish->request));
  } else if (const auto* bring = std::get_if<BringAction>(&action)) {
    waiting_.Started(bring->task, now);
    carrier_->Bring(bring->task);
  } else if (auto* report = std::get_if<ReportAction>(&action)) {
    if (const auto* ended = std::get_if<Ended>(&report->fact)) {
      TRAIND_LOG(INFO) << "attempt " << report->attempt << " ended: " << Name(ended->reason)
                       << (ended->message.empty() ? "" : " ") << ended->message;
    }
    NoteResources(*report, now);
    ReportFact(std::move(*report), now);
  } else if (const auto* ready = std::get_if<GangReadyAction>(&action)) {
    if (!connected_) return;  // it is told again with the next Welcome
    v1::WorkerMessage message;
    message.mutable_gang_ready()->set_attempt(ready->attempt);
    message.mutable_gang_ready()->set_port(ready->port);
    client_->Send(stream_, std::move(message), /*may_drop=*/false);
  } else if (const auto* answer = std::get_if<AnswerAction>(&action)) {
    // The parts of an answer belong together, so none may be dropped.
    if (connected_) client_->Send(stream_, AnswerToProto(answer->answer), /*may_drop=*/false);
  } else if (const auto* published = std::get_if<ReportPublishedAction>(&action)) {
    if (const int64_t attempt = own_folder_ ? waiting_.Published(published->job) : 0; attempt > 0) {
      if (const auto next = waiting_.NextSend(attempt, now)) carrier_->Send(*next);
      return;
    }
    Report(PublishedToProto(*published), /*is_fact=*/true, now);
  }
}

// ---- the end ----------------------------------------------------------------

bool Daemon::IdleForTooLong(absl::Duration now) {
  if (connected_ || core_.has_work()) alone_since_ = now;
  return !core_.leaving() && options_.standalone && now - alone_since_ >= options_.idle_exit;
}

absl::Duration Daemon::LeaveAt() const {
  absl::Duration at = started_at_ + options_.lifetime;
  if (!options_.standalone && !core_.has_work())
    at = std::min(at, idle_since_ + options_.idle_exit);
  return at;
}

std::string Daemon::WhyLeave(absl::Duration now) {
  if (core_.has_work()) idle_since_ = now;
  if (core_.leaving() || now < LeaveAt()) return "";
  const bool old = now >= started_at_ + options_.lifetime;
  return absl::StrCat(old ? "it has run for " : "no work for ",
                      absl::FormatDuration(old ? options_.lifetime : options_.idle_exit));
}

// traind is told before it hears that Attempts have ended, or it would start them here again.
void Daemon::Leave(absl::Duration grace, absl::Duration now) {
  core_.Shutdown(grace, now);
  next_heartbeat_ = std::min(next_heartbeat_, now);
  Heartbeat(now);
}

absl::Status Daemon::FlushAndEnd() {
  const absl::Duration until =
      clock_.MonotonicNow() + (own_folder_ ? options_.stop_grace : kFlushWait);
  const auto has_news = [this] { return !outbox_.empty() || !waiting_.Attempts().empty(); };
  while (connected_ && has_news() && clock_.MonotonicNow() < until) {
    next_heartbeat_ = std::min(next_heartbeat_, until);
    if (const absl::Status status = Turn(); !status.ok()) return status;
  }
  if (!outbox_.empty()) TRAIND_LOG(WARNING) << outbox_.size() << " facts were not taken by traind";
  client_->Finish(absl::Milliseconds(200));
  TRAIND_LOG(INFO) << "ended";
  return absl::OkStatus();
}

}  // namespace traind::worker
