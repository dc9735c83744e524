#include "server/rpc/worker_gateway.h"

#include <absl/strings/str_cat.h>
#include <google/protobuf/util/time_util.h>

#include <optional>
#include <utility>

#include "common/base/engine_version.h"
#include "common/base/log.h"
#include "common/wire/attempt_report.h"
#include "common/wire/grpc_status.h"
#include "server/rpc/caller_of.h"
#include "server/rpc/fact_checks.h"
#include "server/rpc/worker_conversion.h"

namespace traind {

using google::protobuf::util::TimeUtil;

namespace {

// A Worker that has missed so many heartbeats gives way to another process with its id.
constexpr int kSilentBeats = 3;

}  // namespace

// A Worker's open stream. It is greeted first, and has an id from then on.
struct GrpcWorkerGateway::Session final : WorkerStream {
  Session(GrpcWorkerGateway* owner, grpc::CallbackServerContext* call, WorkerStreamLimits limits)
      : WorkerStream(call, limits), gateway(owner), context(call) {}

  void Take(const v1::WorkerMessage& message) override {
    if (id == 0) return gateway->Greet(Self(), message.hello());
    gateway->Take(Self(), message);
  }
  void Ended() override {
    if (id != 0) gateway->Close(Self());
  }
  std::shared_ptr<Session> Self() { return std::static_pointer_cast<Session>(shared_from_this()); }

  GrpcWorkerGateway* const gateway;
  grpc::CallbackServerContext* const context;  // while a message is being taken
  std::string worker;
  std::string boot;  // names the process of the Worker
  uint64_t id = 0;
  absl::Duration heard;     // under the gateway's mutex: when it last told something
  absl::Duration admitted;  // while a message is being taken: when its token last counted
};

// One that Ask waits for.
struct GrpcWorkerGateway::Question {
  std::string worker;
  // Both are under the gateway's mutex.
  v1::PredictRowsReply parts;  // rows that have come so far
  std::optional<absl::StatusOr<v1::PredictRowsReply>> answer;
};

GrpcWorkerGateway::GrpcWorkerGateway(WorkerGatewayOptions options, const Clock* clock, Post post,
                                     WorkerPublished published)
    : options_(std::move(options)),
      clock_(clock),
      post_(std::move(post)),
      published_(std::move(published)) {}

GrpcWorkerGateway::~GrpcWorkerGateway() = default;

grpc::ServerBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage>* GrpcWorkerGateway::Attach(
    grpc::CallbackServerContext* context) {
  const auto session = std::make_shared<Session>(this, context, options_.stream);
  session->Begin();
  return session.get();
}

void GrpcWorkerGateway::Greet(const std::shared_ptr<Session>& session, const v1::Hello& hello) {
  if (hello.worker_id().empty() || hello.boot_id().empty()) {
    return session->End(ToGrpc(absl::FailedPreconditionError(
        "the first message must be a Hello with worker_id and boot_id")));
  }
  if (hello.engine() != kEngineVersion) {
    const absl::Status other = absl::FailedPreconditionError(
        absl::StrCat("the Worker ", hello.worker_id(), " on ", hello.hostname(),
                     " has the engine '", hello.engine(), "', this traind has '", kEngineVersion,
                     "': its folds would differ; install one version on both"));
    return session->End(Refuse(other));
  }
  if (hello.epoch() > options_.epoch) {
    const absl::Status succeeded = absl::FailedPreconditionError(
        absl::StrCat("the Worker ", hello.worker_id(), " has worked for the traind of epoch ",
                     hello.epoch(), "; this one, of epoch ", options_.epoch,
                     ", was succeeded, or gave up its archive: then start the Worker anew"));
    return session->End(Refuse(succeeded));
  }
  if (options_.claim == nullptr) return Open(session, hello);
  disk_.Add([this, session, &hello] { Claim(session, hello); }, absl::InfiniteFuture());
}

void GrpcWorkerGateway::Claim(const std::shared_ptr<Session>& session, const v1::Hello& hello) {
  const auto caller = CallerOf(*session->context, {options_.gate, nullptr});
  const absl::Status claimed =
      caller.ok() ? options_.claim(hello.worker_id(), caller->name) : caller.status();
  if (!claimed.ok()) return session->End(Refuse(claimed));
  Open(session, hello);
}

grpc::Status GrpcWorkerGateway::Refuse(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  // The Worker tries again and again; one line tells of all with the same cause.
  if (refused_ != why.message()) TRAIND_LOG(WARNING) << why.message();
  refused_ = std::string(why.message());
  return ToGrpc(why);
}

void GrpcWorkerGateway::Open(const std::shared_ptr<Session>& session, const v1::Hello& hello) {
  session->worker = hello.worker_id();
  session->boot = hello.boot_id();
  v1::CoordinatorMessage welcome;
  welcome.mutable_welcome()->set_lease_ms(absl::ToInt64Milliseconds(options_.lease));
  welcome.mutable_welcome()->set_heartbeat_ms(absl::ToInt64Milliseconds(options_.heartbeat));
  welcome.mutable_welcome()->set_coordinator_id(options_.coordinator_id);
  welcome.mutable_welcome()->set_epoch(options_.epoch);
  for (const std::string& root : options_.data_roots) {
    welcome.mutable_welcome()->add_data_roots(root);
  }

  v1::WorkerInfo info;
  info.set_id(hello.worker_id());
  info.set_hostname(hello.hostname());
  info.set_connected(true);
  *info.mutable_slots() = hello.slots();
  info.set_pid(hello.pid());
  info.set_version(hello.version());
  info.set_lent_as(hello.lent_as());
  *info.mutable_labels() = hello.labels();
  *info.mutable_last_seen() =
      TimeUtil::MillisecondsToTimestamp(absl::ToUnixMillis(clock_->WallNow()));

  std::shared_ptr<Session> former;
  bool twice = false;
  {
    absl::MutexLock lock(&mutex_);
    // A Worker that was started anew waits until its predecessor has been silent for a while.
    const auto open = sessions_.find(session->worker);
    twice = open != sessions_.end() && open->second->boot != session->boot &&
            clock_->MonotonicNow() - open->second->heard < kSilentBeats * options_.heartbeat;
    if (!twice) {
      session->heard = clock_->MonotonicNow();
      session->id = ++last_session_;
      // Nobody else knows the session yet, so this comes first.
      session->Send(std::move(welcome), WorkerStream::WhenFull::kEnd);
      former = std::exchange(sessions_[session->worker], session);
      GiveBack(session->worker);
      v1::WorkerInfo& known = known_[session->worker];
      info.set_mode(known.mode());
      if (known.has_drain_at()) *info.mutable_drain_at() = known.drain_at();
      known = std::move(info);
    }
  }
  if (twice) {
    return session->End(Refuse(absl::AlreadyExistsError(absl::StrCat(
        "a Worker ", session->worker,
        " is attached and answers; give each Worker a host name or a state folder of its own"))));
  }
  if (former != nullptr) former->Cancel();
  TRAIND_LOG(INFO) << "the Worker " << session->worker << " attached (process " << hello.pid()
                   << ", " << hello.slots_size() << " slots, " << hello.running_attempts_size()
                   << " Attempts running)";
  // Attached only now: what the core sends on hearing of it comes after Welcome.
  post_(AttachedFromProto(hello, session->id));
  session->ReadNext();
}

void GrpcWorkerGateway::Close(const std::shared_ptr<Session>& session) {
  Forget(session);
  post_(WorkerDetached{session->worker, session->id});
}

void GrpcWorkerGateway::Forget(const std::shared_ptr<Session>& session) {
  absl::MutexLock lock(&mutex_);
  const auto it = sessions_.find(session->worker);
  if (it == sessions_.end() || it->second != session) return;
  sessions_.erase(it);
  v1::WorkerInfo& info = known_[session->worker];
  info.set_connected(false);
  for (v1::SlotInfo& slot : *info.mutable_slots()) slot.clear_figures();
  // It said that it leaves: machines that are lent would fill the list.
  if (info.mode() == v1::WORKER_MODE_LEAVING) known_.erase(session->worker);
  GiveBack(session->worker);
  TRAIND_LOG(INFO) << "the Worker " << session->worker << " detached";
}

void GrpcWorkerGateway::GiveBack(const std::string& worker) {
  for (auto& [id, question] : questions_) {
    if (question->worker == worker && !question->answer.has_value()) {
      question->answer = absl::AbortedError("the rows were lost with their Worker");
    }
  }
  answered_.NotifyAll();
}

void GrpcWorkerGateway::Take(const std::shared_ptr<Session>& session,
                             const v1::WorkerMessage& message) {
  switch (message.message_case()) {
    case v1::WorkerMessage::kHeartbeat:
      if (const absl::Status admitted = CheckAgain(*session); !admitted.ok()) {
        Close(session);
        return session->End(Refuse(admitted));
      }
      ++heartbeats_;
      Seen(*session, message.heartbeat());
      post_(WorkerHeartbeat{session->worker,
                            session->id,
                            {message.heartbeat().running_attempts().begin(),
                             message.heartbeat().running_attempts().end()},
                            message.heartbeat().leaving()});
      break;
    case v1::WorkerMessage::kReport:
      post_(WorkerFact{session->worker, session->id, message.sequence(), message.report().attempt(),
                       ReadFact(*session, message.report())});
      break;
    case v1::WorkerMessage::kGangReady:
      post_(GangReady{session->worker, session->id, message.gang_ready().attempt(),
                      message.gang_ready().port()});
      break;
    case v1::WorkerMessage::kPublished:
      // What the Worker says next waits, as an Ack covers all that came before.
      disk_.Add(
          [this, session, &message] {
            published_(message.published().job(),
                       AckCommand{session->worker, session->id, message.sequence()});
            session->ReadNext();
          },
          absl::InfinitePast());
      return;
    case v1::WorkerMessage::kRows:
      TakeAnswer(message.rows());
      break;
    default:
      TRAIND_LOG(WARNING) << "the Worker " << session->worker
                          << " sent a message that this traind does not know";
      post_(WorkerFact{session->worker, session->id, message.sequence(), 0, std::nullopt});
  }
  session->ReadNext();
}

absl::Status GrpcWorkerGateway::CheckAgain(Session& session) const {
  const absl::Duration now = clock_->MonotonicNow();
  if (options_.gate == nullptr || now < session.admitted + kRecheckStreams) return absl::OkStatus();
  session.admitted = now;
  return CallerOf(*session.context, {options_.gate, nullptr}).status();
}

std::optional<facts::Fact> GrpcWorkerGateway::ReadFact(const Session& session,
                                                       const v1::AttemptReport& report) {
  std::optional<facts::Fact> fact = FactOf(report);
  if (fact) fact = CheckedFact(*std::move(fact));
  if (!fact) {
    TRAIND_LOG(WARNING) << "a report of the Worker " << session.worker << " on Attempt "
                        << report.attempt()
                        << " tells nothing that this traind knows, or names a path outside of its "
                           "folder; it is ignored";
  }
  return fact;
}

void GrpcWorkerGateway::Seen(const Session& session, const v1::Heartbeat& heartbeat) {
  absl::MutexLock lock(&mutex_);
  v1::WorkerInfo& info = known_[session.worker];
  info.set_warm_ranks(heartbeat.warm_ranks());
  for (v1::SlotInfo& slot : *info.mutable_slots()) slot.clear_figures();
  for (const v1::SlotFigures& told : heartbeat.figures()) {
    if (told.slot() < 0 || told.slot() >= info.slots_size()) continue;
    *info.mutable_slots(told.slot())->mutable_figures() = CheckedFigures(told.figures());
  }
  if (const auto it = sessions_.find(session.worker);
      it != sessions_.end() && it->second->id == session.id) {
    it->second->heard = clock_->MonotonicNow();
  }
  *info.mutable_last_seen() =
      TimeUtil::MillisecondsToTimestamp(absl::ToUnixMillis(clock_->WallNow()));
}

void GrpcWorkerGateway::Note(const WorkerNote& note) {
  absl::MutexLock lock(&mutex_);
  if (note.mode == WorkerMode::kLeaving && sessions_.count(note.id) == 0) {
    known_.erase(note.id);  // it has left already
    return;
  }
  v1::WorkerInfo& info = known_[note.id];
  info.set_id(note.id);
  info.set_hostname(note.hostname);
  info.set_mode(static_cast<v1::WorkerMode>(note.mode));
  info.clear_drain_at();
  if (note.drain_at == absl::InfiniteFuture()) return;
  *info.mutable_drain_at() = TimeUtil::MillisecondsToTimestamp(absl::ToUnixMillis(note.drain_at));
}

void GrpcWorkerGateway::Enqueue(const std::string& worker, uint64_t session,
                                v1::CoordinatorMessage message) {
  std::shared_ptr<Session> to;
  {
    absl::MutexLock lock(&mutex_);
    const auto it = sessions_.find(worker);
    if (it == sessions_.end()) return;
    to = it->second;
  }
  if (session != 0 && to->id != session) return;
  if (to->Send(std::move(message), WorkerStream::WhenFull::kEnd)) return;
  TRAIND_LOG(WARNING) << "the Worker " << worker
                      << " does not read what it is told, so its stream is cut off";
}

void GrpcWorkerGateway::Send(const AckCommand& command) {
  Enqueue(command.worker, command.session, ToProto(command));
}

void GrpcWorkerGateway::Send(const StartCommand& command, absl::Time now) {
  Enqueue(command.worker, 0, ToProto(command, now));
}

void GrpcWorkerGateway::Send(const StopCommand& command) {
  Enqueue(command.worker, 0, ToProto(command));
}

void GrpcWorkerGateway::Send(const MeetCommand& command) {
  Enqueue(command.worker, 0, ToProto(command));
}

void GrpcWorkerGateway::Send(const ReplanCommand& command, absl::Time now) {
  Enqueue(command.worker, 0, ToProto(command, now));
}

void GrpcWorkerGateway::Send(const ShutdownCommand& command) {
  v1::CoordinatorMessage message;
  message.mutable_shutdown()->set_grace_ms(absl::ToInt64Milliseconds(options_.shutdown_grace));
  Enqueue(command.worker, 0, std::move(message));
}

void GrpcWorkerGateway::CloseAll() {
  std::vector<std::shared_ptr<Session>> open;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [worker, session] : sessions_) open.push_back(session);
  }
  for (const auto& session : open) session->Cancel();
}

absl::StatusOr<v1::PredictRowsReply> GrpcWorkerGateway::Ask(const std::string& worker,
                                                            v1::AskRows ask,
                                                            absl::Duration patience) {
  Question question;
  question.worker = worker;
  uint64_t id = 0;
  std::shared_ptr<Session> to;
  {
    absl::MutexLock lock(&mutex_);
    const auto it = sessions_.find(worker);
    if (it == sessions_.end()) return absl::UnavailableError("its worker is not connected");
    to = it->second;
    id = ++last_question_;
    questions_[id] = &question;
  }
  ask.set_request(id);
  v1::CoordinatorMessage message;
  *message.mutable_rows() = std::move(ask);
  const bool sent = to->Send(std::move(message), WorkerStream::WhenFull::kRefuse);
  absl::MutexLock lock(&mutex_);
  if (!sent) {
    questions_.erase(id);
    return absl::UnavailableError("too much waits for its worker");
  }
  const auto answered = [&question] { return question.answer.has_value(); };
  answered_.Await(mutex_, patience, answered);
  questions_.erase(id);
  if (question.answer.has_value()) return *std::move(question.answer);
  return absl::UnavailableError("the models have not answered in time");
}

void GrpcWorkerGateway::TakeAnswer(const v1::RowsAnswered& answer) {
  absl::MutexLock lock(&mutex_);
  const auto it = questions_.find(answer.request());
  if (it == questions_.end()) return;  // nobody waits any more
  Question& question = *it->second;
  if (answer.code() == 0) {
    if (question.parts.rows_size() == 0) {
      question.parts = answer.reply();
    } else {
      question.parts.mutable_rows()->MergeFrom(answer.reply().rows());
    }
    if (answer.more()) return;
    question.answer = std::move(question.parts);
  } else {
    question.answer = absl::Status(static_cast<absl::StatusCode>(answer.code()), answer.message());
  }
  answered_.NotifyAll();
}

uint64_t GrpcWorkerGateway::newest_session() const {
  absl::MutexLock lock(&mutex_);
  return last_session_;
}

std::vector<v1::WorkerInfo> GrpcWorkerGateway::Workers() const {
  absl::MutexLock lock(&mutex_);
  std::vector<v1::WorkerInfo> workers;
  for (const auto& [id, info] : known_) workers.push_back(info);
  return workers;
}

bool GrpcWorkerGateway::WaitForNone(absl::Duration timeout) const {
  absl::MutexLock lock(&mutex_);
  const auto none = [this] {
    mutex_.AssertReaderHeld();
    return sessions_.empty();
  };
  return answered_.Await(mutex_, timeout, none);
}

}  // namespace traind
