#include "server/loop/control_loop.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/publish/ended_job.h"
#include "common/publish/publisher.h"
#include "server/loop/found_on_disk.h"
#include "server/reuse/trained_folds.h"

namespace traind {
namespace {

constexpr int kPublishThreads = 2;
constexpr int64_t kMiB = int64_t{1} << 20;
constexpr absl::Duration kRetryStore = absl::Milliseconds(250);
// A Worker that has no Ack for 100 ms publishes by itself.
constexpr absl::Duration kSyncAcks = absl::Milliseconds(40);
constexpr absl::Duration kWallStep = absl::Seconds(1);
// A clock that steps all the time must not keep the Workers from being attached.
constexpr absl::Duration kBetweenSteps = absl::Seconds(10);
// The loop wakes up at least so often: for steps of the wall clock, and because the clock of its
// waits stands still while the machine is suspended.
constexpr absl::Duration kLookAtClocks = absl::Seconds(1);
// Whoever wakes so late was stopped meanwhile, and a Worker may have published by itself.
constexpr absl::Duration kStopped = absl::Milliseconds(50);
// A Worker that does not hear traind publishes so long before a deadline, or earlier.
constexpr absl::Duration kPublishedAlone = absl::Seconds(5);

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
      anchor_(clock->WallNow() - absl::UnixEpoch() - clock->MonotonicNow()) {}

ControlLoop::~ControlLoop() { Stop(); }

absl::Time ControlLoop::Now() const {
  absl::MutexLock lock(&anchor_mutex_);
  return absl::UnixEpoch() + anchor_ + clock_->MonotonicNow();
}

absl::Status ControlLoop::Load() {
  ASSIGN_OR_RETURN(Snapshot snapshot, store_->LoadSnapshot());
  if (const absl::Duration back = snapshot.last_seen - Now(); back > absl::ZeroDuration()) {
    TRAIND_LOG(WARNING) << "the wall clock is " << absl::FormatDuration(back)
                        << " behind the last stored time; budgets go on with what remained then";
    RETURN_IF_ERROR(StoreStep(-back, Now()));
    ASSIGN_OR_RETURN(snapshot, store_->LoadSnapshot());
  }
  adopted_.clear();
  // Workers send again what was not acknowledged.
  unsent_acks_.clear();
  sync_by_ = absl::InfiniteDuration();
  unsynced_ = false;
  std::vector<UnreadCheckpoints> unread;
  for (const Job& job : snapshot.active) {
    AddStanding(options_.state_dir, job.id, &adopted_);
    AddCheckpoints(options_.state_dir, job, &adopted_, &unread);
  }
  if (!unread.empty() && !readers_) readers_ = std::make_unique<PublishPool>(/*threads=*/1);
  for (const UnreadCheckpoints& attempt : unread) {
    const auto read = [this, attempt] {
      if (auto found = ReadCheckpoints(options_.state_dir, attempt)) Post(*std::move(found));
    };
    readers_->Add(read, Now());
  }
  core_ = std::make_unique<ControlCore>(options_.core);
  core_->Restore(std::move(snapshot), Now());
  views_.Update(core_->ActiveJobs());
  // After a commit with unknown outcome, Jobs that readers see as active may have ended.
  for (const auto& job : views_.Active()) {
    if (core_->HasJob(job->id)) continue;
    ASSIGN_OR_RETURN(Job stored, store_->GetJob(job->id));
    views_.Update({std::make_shared<const Job>(std::move(stored))});
  }
  return absl::OkStatus();
}

void ControlLoop::Start(WorkerGateway* gateway) {
  gateway_ = gateway;
  last_turn_ns_ = absl::ToInt64Nanoseconds(clock_->MonotonicNow());
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
  news_.NotifyAll();
  over_.NotifyAll();
  if (thread_.joinable()) thread_.join();
  publishers_.reset();
  readers_.reset();
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

void ControlLoop::Wake() {
  urgent_ = true;
  news_.NotifyAll();
}

void ControlLoop::Post(Event event) {
  const auto* const heartbeat = std::get_if<WorkerHeartbeat>(&event);
  const bool may_wait = heartbeat != nullptr && !heartbeat->leaving;
  absl::MutexLock lock(&mutex_);
  inbox_.push_back(std::move(event));
  if (!may_wait || clock_->MonotonicNow() >= gather_until_) Wake();
}

void ControlLoop::AdoptPrediction(const std::string& job, AckCommand ack) {
  auto standing = ReadStandingPrediction(options_.state_dir, job);
  absl::MutexLock lock(&mutex_);
  if (standing.ok()) inbox_.push_back(Published{job, std::move(standing), /*unasked=*/true});
  acks_.push_back(std::move(ack));
  Wake();
}

void ControlLoop::Submit(Job job, Answer answer) {
  PostCall(traind::Submit{0, std::move(job)}, std::move(answer));
}

void ControlLoop::SubmitAll(std::vector<std::pair<Job, Answer>> jobs) {
  {
    absl::MutexLock lock(&mutex_);
    if (!stopped_) {
      const size_t size = inbox_.size() + jobs.size();
      if (inbox_.capacity() < size) inbox_.reserve(2 * size);
      const CallId batch = next_call_;
      for (auto& [job, answer] : jobs) {
        calls_.emplace(next_call_, std::move(answer));
        inbox_.push_back(traind::Submit{next_call_++, std::move(job), batch});
      }
      Wake();
      return;
    }
  }
  for (const auto& [job, answer] : jobs) {
    answer({0, absl::UnavailableError("traind is stopping"), nullptr, false, {}});
  }
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

void ControlLoop::Propose(traind::Propose event, Answer answer) {
  PostCall(std::move(event), std::move(answer));
}

void ControlLoop::SetQuota(traind::SetQuota event, Answer answer) {
  PostCall(std::move(event), std::move(answer));
}

void ControlLoop::RemoveQuota(QuotaSubject subject, Answer answer) {
  PostCall(traind::RemoveQuota{0, std::move(subject)}, std::move(answer));
}

void ControlLoop::ListQuotas(Answer answer) { PostCall(traind::ListQuotas{}, std::move(answer)); }

void ControlLoop::UpdateWorker(traind::UpdateWorker event, Answer answer) {
  PostCall(std::move(event), std::move(answer));
}

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
      Wake();
      return;
    }
  }
  answer({0, absl::UnavailableError("traind is stopping"), nullptr, false, {}});
}

absl::Status ControlLoop::fatal() const {
  absl::MutexLock lock(&mutex_);
  return fatal_;
}

void ControlLoop::Fail(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  fatal_ = status;
  over_.NotifyAll();
}

bool ControlLoop::WaitForFatal(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  const auto over = [this] {
    mutex_.AssertReaderHeld();
    return stopping_ || !fatal_.ok();
  };
  over_.Await(mutex_, timeout, over);
  return !fatal_.ok();
}

absl::Duration ControlLoop::SinceLastTurn() const {
  return clock_->MonotonicNow() - absl::Nanoseconds(last_turn_ns_.load());
}

void ControlLoop::Run() {
  absl::Time wakeup = RunOnce(std::move(adopted_), {});
  while (fatal().ok()) {
    std::vector<Event> events;
    std::vector<AckCommand> acks;
    bool last = false;
    last_turn_ns_ = absl::ToInt64Nanoseconds(clock_->MonotonicNow());
    {
      absl::MutexLock lock(&mutex_);
      const auto ready = [this] {
        mutex_.AssertReaderHeld();
        return stopping_ || urgent_;
      };
      absl::Duration wait = std::clamp(wakeup - Now(), absl::ZeroDuration(), kLookAtClocks);
      if (log_written_) wait = std::min(wait, options_.checkpoint_idle);
      const absl::Duration now = clock_->MonotonicNow();
      wait = std::clamp(sync_by_ - now, absl::ZeroDuration(), wait);
      if (gather_until_ > now) wait = std::min(wait, gather_until_ - now);
      news_.Await(mutex_, wait, ready);
      events.swap(inbox_);
      acks.swap(acks_);
      urgent_ = false;
      if (!events.empty()) gather_until_ = clock_->MonotonicNow() + options_.gather_heartbeats;
      last = stopping_ && events.empty();
    }
    if (last) break;
    if (Now() - wakeup > kStopped) AddPublishedAlone(&events);
    if (!events.empty() || !acks.empty() || Now() >= wakeup) {
      wakeup = RunOnce(std::move(events), std::move(acks));
    }
    // After a failure nothing more is written.
    if (fatal().ok()) SyncWhenDue();
    if (fatal().ok()) {
      if (const auto due = FollowWallClock()) wakeup = *due;
    }
    if (fatal().ok()) MoveLog();
  }
  if (!fatal().ok()) return;
  if (const absl::Status moved = store_->CheckpointLog(); !moved.ok()) {
    TRAIND_LOG(WARNING) << "the write-ahead log was not moved: " << moved;
  }
}

void ControlLoop::AddPublishedAlone(std::vector<Event>* events) const {
  const absl::Time soon = Now() + kPublishedAlone;
  for (const auto& job : core_->ActiveJobs()) {
    if (job->deadline < soon) AddStanding(options_.state_dir, job->id, events);
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
  figures_.NoteLog(bytes);
  const absl::Duration begin = clock_->MonotonicNow();
  if (begin < move_log_again_) return;
  if (bytes < options_.most_log_bytes && !(quiet && bytes >= options_.checkpoint_bytes) &&
      Now() - last_commit_ < options_.checkpoint_idle) {
    return;
  }
  const absl::Status moved = store_->CheckpointLog();
  // On a full disk the log stays, and moving it is tried again. After another error the database
  // may lack pages that the system takes for written, and the log must not be overwritten.
  if (!moved.ok() && !absl::IsResourceExhausted(moved)) return Fail(moved);
  const bool stays = !moved.ok() || store_->LogBytes() > 0;
  // A reader may keep the log for hours, and each try reads all of it: no more than a tenth of the
  // time goes into that.
  const absl::Duration end = clock_->MonotonicNow();
  move_log_again_ = stays ? end + 9 * (end - begin) : -absl::InfiniteDuration();
  log_written_ = stays;
  last_commit_ = Now();
  figures_.NoteLog(store_->LogBytes());
  WarnOfHeldLog();
}

void ControlLoop::WarnOfHeldLog() {
  const int64_t held = store_->HeldLogBytes();
  if (held <= options_.most_log_bytes) {
    if (warn_of_log_at_ > 0) {
      TRAIND_LOG(INFO) << "no reader holds the write-ahead log of traind.db any more";
    }
    warn_of_log_at_ = 0;
    return;
  }
  if (held < warn_of_log_at_) return;
  TRAIND_LOG(WARNING) << "the write-ahead log of traind.db has " << store_->LogBytes() / kMiB
                      << " MiB and grows with every change, because another program keeps a read "
                         "transaction of traind.db open; let it end that transaction, or end the "
                         "program (fuser traind.db names it). The log is emptied then";
  warn_of_log_at_ = 2 * held;
}

std::vector<Reply> ControlLoop::AnswerFromStore(std::vector<Event>* events) {
  // Submits come first: a Job that is active now stays active until the core has seen them.
  std::stable_partition(events->begin(), events->end(), [](const Event& event) {
    return std::holds_alternative<traind::Submit>(event);
  });
  const auto submit_of = [](Event& event) { return std::get_if<traind::Submit>(&event); };
  std::vector<SubmitKey> keys;
  for (Event& event : *events) {
    const auto* const submit = submit_of(event);
    if (submit == nullptr) break;
    keys.push_back({{submit->job.owner, submit->job.request_id}, submit->job.id});
  }
  std::vector<Reply> replies;
  if (keys.empty()) return replies;
  std::vector<absl::StatusOr<KnownSubmit>> known = store_->FindSubmits(keys);
  const auto answered = [&](Event& event, absl::StatusOr<KnownSubmit>& found) {
    Job& job = submit_of(event)->job;
    Reply reply;
    reply.call = submit_of(event)->call;
    reply.status = found.status();
    if (found.ok() && found->job && IsTerminal(found->job->state)) {
      reply.job = std::make_shared<const Job>(*std::move(found->job));
    }
    if (!found.ok() || reply.job != nullptr) {
      replies.push_back(std::move(reply));
      return true;
    }
    // Ids are random, and the core only prevents collisions with active Jobs.
    while (found.ok() && found->id_is_taken) {
      job.id += "-2";
      found = store_->FindSubmits({{{job.owner, ""}, job.id}})[0];
    }
    return false;
  };
  size_t kept = 0;
  for (size_t i = 0; i < events->size(); ++i) {
    if (i < known.size() && answered((*events)[i], known[i])) continue;
    if (kept < i) (*events)[kept] = std::move((*events)[i]);
    ++kept;
  }
  events->erase(events->begin() + static_cast<std::ptrdiff_t>(kept), events->end());
  return replies;
}

absl::Time ControlLoop::RunOnce(std::vector<Event> events, std::vector<AckCommand> acks) {
  const absl::Time now = Now();
  const absl::Duration begin = clock_->MonotonicNow();
  const size_t event_count = events.size();
  std::vector<Reply> known = AnswerFromStore(&events);
  Turn turn = core_->Step(std::move(events), now);
  for (Reply& reply : known) turn.replies.push_back(std::move(reply));
  const absl::Time next_wakeup = turn.next_wakeup;
  if (!turn.mutations.empty()) {
    if (turn.mutations.durable) turn.mutations.last_seen = now;
    const absl::Duration commit_begin = clock_->MonotonicNow();
    if (const absl::Status committed = store_->Commit(turn.mutations); !committed.ok()) {
      Recover(turn, committed);
      return Now();
    }
    figures_.AddCommit(clock_->MonotonicNow() - commit_begin);
    log_written_ = true;
    last_commit_ = now;
    unsynced_ = !turn.mutations.durable;  // a durable commit syncs those before it, too
  }
  for (AckCommand& ack : acks) turn.acks.push_back(std::move(ack));
  Act(std::move(turn), now);
  figures_.AddTurn(event_count, clock_->MonotonicNow() - begin);
  return next_wakeup;
}

void ControlLoop::Acknowledge(std::vector<AckCommand> acks) {
  for (AckCommand& ack : acks) unsent_acks_.push_back(std::move(ack));
  if (unsent_acks_.empty()) return;
  if (unsynced_) {
    sync_by_ = std::min(sync_by_, clock_->MonotonicNow() + kSyncAcks);
    return;
  }
  for (const AckCommand& ack : unsent_acks_) gateway_->Send(ack);
  unsent_acks_.clear();
  sync_by_ = absl::InfiniteDuration();
}

void ControlLoop::SyncWhenDue() {
  if (clock_->MonotonicNow() < sync_by_) return;
  Mutations sync;
  sync.last_seen = Now();
  sync.durable = true;
  if (const absl::Status synced = store_->Commit(sync); !synced.ok()) {
    return Recover(Turn(), synced);
  }
  unsynced_ = false;
  Acknowledge({});
}

void ControlLoop::Act(Turn turn, absl::Time now) {
  for (const auto& job : turn.changed) {
    const auto before = views_.Find(job->id).job;
    const bool ends = IsTerminal(job->state) && before != nullptr && !IsTerminal(before->state);
    if (ends) figures_.AddEnded(*job);
  }
  views_.Update(turn.changed);
  for (const auto& deletion : turn.mutations.deletions) views_.Remove(deletion.job);
  for (const auto& [job, pinned] : turn.mutations.pins) views_.Remove(job);
  Acknowledge(std::move(turn.acks));
  for (const StopCommand& stop : turn.stops) gateway_->Send(stop);
  for (const StartCommand& start : turn.starts) gateway_->Send(start, now);
  for (const MeetCommand& meet : turn.meets) gateway_->Send(meet);
  for (const ReplanCommand& replan : turn.replans) gateway_->Send(replan, now);
  for (const ShutdownCommand& shutdown : turn.shutdowns) gateway_->Send(shutdown);
  for (const WorkerNote& note : turn.notes) gateway_->Note(note);
  for (PublishCommand& publish : turn.publishes) {
    publish.request.state_dir = options_.state_dir;
    const auto job = core_->FindJob(publish.job);
    publishers_->Add(std::move(publish), job ? job->deadline : absl::InfiniteFuture());
  }
  for (const std::string& job : turn.ended) {
    publishers_->Add([this, job] { EndPublishingFor(job); }, now);
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

void ControlLoop::EndPublishingFor(const std::string& job) {
  const auto stored = store_->GetJob(job);
  if (!stored.ok() || !IsTerminal(stored->state)) return;
  const int number = stored->prediction ? stored->prediction->number : 0;
  const Quality quality = stored->prediction ? stored->prediction->quality : Quality::kNone;
  const absl::Status ended = EndPublishing(options_.state_dir, job, number, quality);
  if (!ended.ok()) {
    TRAIND_LOG(WARNING) << "job " << job << " is over, but a Worker may still publish: " << ended;
  }
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

// Handles a failed commit. If the disk was full or the store refused the changes, nothing of the
// turn was stored: the core is discarded and the store is read again. After any other error nobody
// knows what is on the disk, so the process ends, and the next one finds out. Workers repeat their
// facts; callers get an error and may repeat their request under the same id.
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
  if (!full && !absl::IsAborted(failure)) return Fail(failure);
  if (const absl::Status loaded = Load(); !loaded.ok()) return Fail(loaded);
  absl::MutexLock lock(&mutex_);
  for (Event& event : adopted_) inbox_.push_back(std::move(event));
  adopted_.clear();
  urgent_ = true;
  // It waits before the next try, because the disk is full for everybody.
  const auto stopping = [this] {
    mutex_.AssertReaderHeld();
    return stopping_;
  };
  over_.Await(mutex_, kRetryStore, stopping);
}

std::optional<absl::Time> ControlLoop::FollowWallClock() {
  const absl::Duration step = clock_->WallNow() - Now();
  const absl::Duration now = clock_->MonotonicNow();
  if (absl::AbsDuration(step) < kWallStep || now < look_at_wall_) return std::nullopt;
  look_at_wall_ = now + kBetweenSteps;
  TRAIND_LOG(WARNING) << "the wall clock stepped by " << absl::FormatDuration(step)
                      << "; deadlines given as a time of day follow it, budgets keep their rest";
  gateway_->CloseAll();
  absl::Status moved = StoreStep(step, Now() + step);
  if (moved.ok()) {
    {
      absl::MutexLock lock(&anchor_mutex_);
      anchor_ += step;
    }
    moved = Load();
  }
  if (absl::IsResourceExhausted(moved)) {
    Recover(Turn(), moved);
    return Now();
  }
  if (!moved.ok()) {
    // Whether the times have moved is unknown. The next start finds out from the last stored time.
    Fail(moved);
    return Now();
  }
  return RunOnce(std::move(adopted_), {});
}

absl::Status ControlLoop::StoreStep(absl::Duration step, absl::Time after) {
  Mutations moved;
  moved.clock_step = step;
  moved.last_seen = after;
  moved.durable = true;
  return store_->Commit(moved);
}

}  // namespace traind
