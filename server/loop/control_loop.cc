#include "server/loop/control_loop.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/publish/publisher.h"
#include "server/reuse/trained_folds.h"

namespace traind {
namespace {

constexpr int kPublishThreads = 2;
constexpr absl::Duration kRetryStore = absl::Milliseconds(250);
constexpr absl::Duration kWallJump = absl::Seconds(1);

}  // namespace

absl::StatusOr<std::unique_ptr<ControlLoop>> ControlLoop::Create(LoopOptions options, Store* store,
                                                                 const Clock* clock) {
  std::unique_ptr<ControlLoop> loop(new ControlLoop(std::move(options), store, clock));
  RETURN_IF_ERROR(loop->Load());
  return loop;
}

ControlLoop::ControlLoop(LoopOptions options, Store* store, const Clock* clock)
    : options_(std::move(options)),
      store_(store),
      clock_(clock),
      anchor_wall_(clock->WallNow()),
      anchor_monotonic_(clock->MonotonicNow()) {}

ControlLoop::~ControlLoop() { Stop(); }

absl::Time ControlLoop::Now() const {
  return anchor_wall_ + (clock_->MonotonicNow() - anchor_monotonic_);
}

absl::Status ControlLoop::Load() {
  ASSIGN_OR_RETURN(Snapshot snapshot, store_->LoadSnapshot());
  // This can only happen at the start: later, Now() is never before a stored time.
  if (const absl::Duration back = snapshot.last_seen - Now(); back > absl::ZeroDuration()) {
    TRAIND_LOG(WARNING) << "the wall clock is " << absl::FormatDuration(back)
                        << " behind the last stored time; deadlines count from the stored time";
    anchor_wall_ += back;
  }
  wall_offset_ = clock_->WallNow() - Now();
  adopted_.clear();
  for (const Job& job : snapshot.active) {
    auto standing = ReadStandingPrediction(options_.state_dir, job.id);
    if (standing.ok()) adopted_.push_back(Published{job.id, std::move(standing), /*unasked=*/true});
  }
  core_ = std::make_unique<ControlCore>(options_.core);
  core_->Restore(std::move(snapshot), Now());
  views_.Update(core_->ActiveJobs());
  // After a commit with unknown outcome, Jobs that readers see as active may have ended.
  for (const auto& job : views_.Active()) {
    if (core_->FindJob(job->id) != nullptr) continue;
    ASSIGN_OR_RETURN(Job stored, store_->GetJob(job->id));
    views_.Update({std::make_shared<const Job>(std::move(stored))});
  }
  return absl::OkStatus();
}

void ControlLoop::Start(WorkerGateway* gateway) {
  gateway_ = gateway;
  publishers_ = std::make_unique<PublishPool>(
      kPublishThreads,
      [this](const PublishRequest& request) {
        // Without a table the core only asks which Prediction stands.
        return request.table.empty() ? ReadStandingPrediction(request.state_dir, request.job)
                                     : Publish(request, Now());
      },
      [this](Published published) { Post(std::move(published)); });
  thread_ = std::thread([this] { Run(); });
}

void ControlLoop::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
  publishers_.reset();
  views_.Close();
  absl::flat_hash_map<CallId, Answer> left;
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
    left.swap(calls_);
  }
  for (auto& [call, answer] : left) {
    answer({call, absl::UnavailableError("traind is stopping"), nullptr, false, {}});
  }
}

void ControlLoop::Post(Event event) {
  absl::MutexLock lock(&mutex_);
  inbox_.push_back(std::move(event));
}

void ControlLoop::AdoptPrediction(const std::string& job, AckCommand ack) {
  auto standing = ReadStandingPrediction(options_.state_dir, job);
  absl::MutexLock lock(&mutex_);
  if (standing.ok()) inbox_.push_back(Published{job, std::move(standing), /*unasked=*/true});
  acks_.push_back(std::move(ack));
}

void ControlLoop::Submit(Job job, Answer answer) {
  PostCall(traind::Submit{0, std::move(job)}, std::move(answer));
}

void ControlLoop::Finish(const std::string& job, Answer answer) {
  PostCall(traind::Finish{0, job}, std::move(answer));
}

void ControlLoop::Cancel(const std::string& job, Answer answer) {
  PostCall(traind::Cancel{0, job}, std::move(answer));
}

void ControlLoop::Pause(const std::string& job, Answer answer) {
  PostCall(traind::Pause{0, job}, std::move(answer));
}

void ControlLoop::Resume(const std::string& job, Answer answer) {
  PostCall(traind::Resume{0, job}, std::move(answer));
}

void ControlLoop::Update(traind::Update update, Answer answer) {
  PostCall(std::move(update), std::move(answer));
}

void ControlLoop::SetQuota(traind::SetQuota event, Answer answer) {
  PostCall(std::move(event), std::move(answer));
}

void ControlLoop::RemoveQuota(QuotaSubject subject, Answer answer) {
  PostCall(traind::RemoveQuota{0, std::move(subject)}, std::move(answer));
}

void ControlLoop::ListQuotas(Answer answer) { PostCall(traind::ListQuotas{}, std::move(answer)); }

void ControlLoop::Pin(const std::string& job, bool pinned, Answer answer) {
  PostCall(traind::Pin{0, job, pinned}, std::move(answer));
}

void ControlLoop::Delete(const std::string& job, std::vector<int64_t> attempts, Answer answer) {
  PostCall(DeleteJob{0, job, std::move(attempts)}, std::move(answer));
}

void ControlLoop::Purge(const std::string& job, Answer answer) {
  PostCall(PurgeJob{0, job}, std::move(answer));
}

void ControlLoop::ForgetHistory(const std::string& job, Answer answer) {
  PostCall(traind::ForgetHistory{0, job}, std::move(answer));
}

template <typename Call>
void ControlLoop::PostCall(Call event, Answer answer) {
  {
    absl::MutexLock lock(&mutex_);
    if (!stopped_) {
      event.call = next_call_++;
      calls_.emplace(event.call, std::move(answer));
      inbox_.push_back(std::move(event));
      return;
    }
  }
  answer({0, absl::UnavailableError("traind is stopping"), nullptr, false, {}});
}

absl::Status ControlLoop::fatal() const {
  absl::MutexLock lock(&mutex_);
  return fatal_;
}

bool ControlLoop::WaitForFatal(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  const auto over = [this] {
    mutex_.AssertReaderHeld();
    return stopping_ || !fatal_.ok();
  };
  mutex_.AwaitWithTimeout(absl::Condition(&over), timeout);
  return !fatal_.ok();
}

void ControlLoop::Run() {
  absl::Time wakeup = RunOnce(std::move(adopted_), {});
  while (true) {
    std::vector<Event> events;
    std::vector<AckCommand> acks;
    bool last = false;
    {
      absl::MutexLock lock(&mutex_);
      const auto ready = [this] {
        mutex_.AssertReaderHeld();
        return stopping_ || !inbox_.empty() || !acks_.empty();
      };
      absl::Duration wait = wakeup - Now();
      if (log_written_) wait = std::min(wait, options_.checkpoint_idle);
      mutex_.AwaitWithTimeout(absl::Condition(&ready), std::max(wait, absl::ZeroDuration()));
      events.swap(inbox_);
      acks.swap(acks_);
      last = stopping_ && events.empty();
    }
    if (last) break;
    NoteWallClock();
    if (!events.empty() || !acks.empty() || Now() >= wakeup) {
      wakeup = RunOnce(std::move(events), std::move(acks));
    }
    MoveLog();
    if (!fatal().ok()) return;
  }
  if (const absl::Status moved = store_->CheckpointLog(); !moved.ok()) {
    TRAIND_LOG(WARNING) << "the write-ahead log was not moved: " << moved;
  }
}

void ControlLoop::MoveLog() {
  if (!log_written_) return;
  bool quiet = false;
  {
    absl::MutexLock lock(&mutex_);
    quiet = inbox_.empty();
  }
  const int64_t bytes = store_->LogBytes();
  if (bytes < options_.most_log_bytes && !(quiet && bytes >= options_.checkpoint_bytes) &&
      Now() - last_commit_ < options_.checkpoint_idle) {
    return;
  }
  // A failure loses nothing: the log stays, and moving it is tried again.
  log_written_ = !store_->CheckpointLog().ok();
  last_commit_ = Now();
}

std::vector<Reply> ControlLoop::AnswerFromStore(std::vector<Event>* events) {
  // Submits come first: a Job that is active now stays active until the core has seen them.
  std::stable_partition(events->begin(), events->end(), [](const Event& event) {
    return std::holds_alternative<traind::Submit>(event);
  });
  std::vector<Reply> replies;
  const auto answered = [&](Event& event) {
    auto* const submit = std::get_if<traind::Submit>(&event);
    if (submit == nullptr) return false;
    Job& job = submit->job;
    if (!job.request_id.empty()) {
      auto known = store_->FindByRequest(job.owner, job.request_id);
      if (known.ok() && IsTerminal(known->state)) {
        replies.push_back({submit->call,
                           absl::OkStatus(),
                           std::make_shared<const Job>(*std::move(known)),
                           false,
                           {}});
        return true;
      }
    }
    // Ids are random, and the core only prevents collisions with active Jobs.
    while (store_->GetJob(job.id).ok()) job.id += "-2";
    return false;
  };
  const auto gone = std::remove_if(events->begin(), events->end(), answered);
  events->erase(gone, events->end());
  return replies;
}

absl::Time ControlLoop::RunOnce(std::vector<Event> events, std::vector<AckCommand> acks) {
  const absl::Time now = Now();
  std::vector<Reply> known = AnswerFromStore(&events);
  Turn turn = core_->Step(std::move(events), now);
  for (Reply& reply : known) turn.replies.push_back(std::move(reply));
  const absl::Time next_wakeup = turn.next_wakeup;
  if (!turn.mutations.empty()) {
    if (turn.mutations.durable) turn.mutations.last_seen = now;
    if (const absl::Status committed = store_->Commit(turn.mutations); !committed.ok()) {
      Recover(turn, committed);
      return Now();
    }
    log_written_ = true;
    last_commit_ = now;
  }
  for (AckCommand& ack : acks) turn.acks.push_back(std::move(ack));
  Act(std::move(turn), now);
  return next_wakeup;
}

void ControlLoop::Act(Turn turn, absl::Time now) {
  views_.Update(turn.changed);
  for (const auto& deletion : turn.mutations.deletions) views_.Remove(deletion.job);
  for (const auto& [job, pinned] : turn.mutations.pins) views_.Remove(job);
  for (const AckCommand& ack : turn.acks) gateway_->Send(ack);
  for (const StopCommand& stop : turn.stops) gateway_->Send(stop);
  for (const StartCommand& start : turn.starts) gateway_->Send(start, now);
  for (const ReplanCommand& replan : turn.replans) gateway_->Send(replan, now);
  for (const ShutdownCommand& shutdown : turn.shutdowns) gateway_->Send(shutdown);
  for (PublishCommand& publish : turn.publishes) {
    publish.request.state_dir = options_.state_dir;
    const auto job = core_->FindJob(publish.job);
    publishers_->Add(std::move(publish), job ? job->deadline : absl::InfiniteFuture());
  }
  for (ReuseCommand& reuse : turn.reuses) {
    const auto job = core_->FindJob(reuse.job);
    publishers_->Add(
        [this, reuse = std::move(reuse)] {
          Post(Reused{reuse.job, FindFolds(reuse)});
        },
        job ? job->deadline : absl::InfiniteFuture());
  }
  AnswerAll(turn.replies);
}

absl::StatusOr<std::vector<TrainedFold>> ControlLoop::FindFolds(const ReuseCommand& command) {
  std::vector<Job> sources;
  if (const std::string& from = command.spec.from; !from.empty()) {
    ASSIGN_OR_RETURN(Job source, store_->GetJob(from));
    if (source.table.content_sha256 != command.content_sha256) {
      return absl::FailedPreconditionError(
          absl::StrCat("the files have changed since job ", from, " read them"));
    }
    sources.push_back(std::move(source));
  } else {
    ASSIGN_OR_RETURN(sources, store_->FindTrained(command.spec.cache_key, command.content_sha256));
    const auto self = [&command](const Job& job) { return job.id == command.job; };
    sources.erase(std::remove_if(sources.begin(), sources.end(), self), sources.end());
  }
  return LinkFolds(options_.state_dir, command.job, ChooseFolds(sources, command.spec));
}

void ControlLoop::AnswerAll(const std::vector<Reply>& replies) {
  for (const Reply& reply : replies) {
    Answer answer;
    {
      absl::MutexLock lock(&mutex_);
      const auto it = calls_.find(reply.call);
      if (it == calls_.end()) continue;
      answer = std::move(it->second);
      calls_.erase(it);
    }
    answer(reply);
  }
}

// Handles a failed commit. Either nothing of the turn was stored, or the outcome is unknown, so the
// core is discarded and the store is read again. Workers repeat their facts; callers get an error
// and may repeat their request under the same id.
void ControlLoop::Recover(const Turn& turn, const absl::Status& failure) {
  TRAIND_LOG(ERROR) << "commit failed: " << failure;
  const bool full = absl::IsResourceExhausted(failure);
  std::vector<Reply> replies = turn.replies;
  for (Reply& reply : replies) {
    reply.status =
        full ? absl::ResourceExhaustedError(absl::StrCat("nothing was stored: ", failure.message(),
                                                         "; free some space there and try again"))
             : absl::UnavailableError(
                   absl::StrCat("the outcome is unknown, ask again: ", failure.message()));
    reply.job = nullptr;
  }
  gateway_->CloseAll();
  AnswerAll(replies);
  const absl::Time give_up = Now() + absl::Seconds(30);
  while (true) {
    const absl::Status reopened = full ? absl::OkStatus() : store_->Reopen();
    const absl::Status loaded = reopened.ok() ? Load() : reopened;
    if (loaded.ok()) break;
    TRAIND_LOG(ERROR) << "cannot read the store again: " << loaded;
    absl::MutexLock lock(&mutex_);
    if (stopping_ || Now() >= give_up) {
      fatal_ = loaded;
      return;
    }
    const auto stopping = [this] {
      mutex_.AssertReaderHeld();
      return stopping_;
    };
    mutex_.AwaitWithTimeout(absl::Condition(&stopping), kRetryStore);
  }
  absl::MutexLock lock(&mutex_);
  for (Event& event : adopted_) inbox_.push_back(std::move(event));
  adopted_.clear();
  // It waits before the next try, because the disk is full for everybody.
  const auto stopping = [this] {
    mutex_.AssertReaderHeld();
    return stopping_;
  };
  mutex_.AwaitWithTimeout(absl::Condition(&stopping), kRetryStore);
}

void ControlLoop::NoteWallClock() {
  const absl::Duration offset = clock_->WallNow() - Now();
  if (absl::AbsDuration(offset - wall_offset_) < kWallJump) return;
  TRAIND_LOG(WARNING) << "the wall clock jumped by " << absl::FormatDuration(offset - wall_offset_)
                      << "; deadlines keep to the monotonic clock";
  wall_offset_ = offset;
}

}  // namespace traind
