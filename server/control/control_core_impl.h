// The inside of the control core: the steps of one turn; what it keeps is in core_state.h. Read
// control_core.cc first (a turn), then the others in the order of a Job's life: requests.cc
// (Submit, Finish, Cancel), after.cc (Jobs that wait for others), reuse.cc (folds of earlier Jobs),
// dispatch.cc (starting), train_queue.cc (who is next), preempt.cc (who makes room), waits.cc (what
// the others are told),
// facts.cc (what Workers say), attempts.cc (endings and retries), costs.cc (what folds cost),
// planning.cc (the clock),
// extra_seeds.cc (models of a fold besides its first), trials.cc (models with other settings),
// proposals.cc (trials of clients), quotas.cc, finalization.cc (the Prediction), inference.cc (Jobs
// that predict with another one's models), retention.cc, workers.cc, drain.cc.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/time/time.h>

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "server/control/control_core.h"
#include "server/control/core_state.h"
#include "server/control/end_reason.h"
#include "server/control/job_line.h"
#include "server/plan/planner.h"
#include "server/plan/quota_use.h"
#include "server/plan/trials.h"
#include "server/schedule/capacity.h"
#include "server/schedule/owner_limits.h"
#include "server/schedule/owner_shares.h"
#include "server/schedule/preemption.h"
#include "server/schedule/scheduler.h"
#include "server/schedule/slot_board.h"

namespace traind {

// How long folds may take to predict after Finish where there is no deadline.
inline constexpr absl::Duration kFinishWait = absl::Seconds(30);
// Ranks stop by their own clock; traind says so too, this much later.
inline constexpr absl::Duration kStopGrace = absl::Milliseconds(150);
// A Worker sends the facts without an Ack right after its Hello.
inline constexpr absl::Duration kResendGrace = absl::Seconds(1);
// For so long the core remembers the request ids of ended Jobs, and of so many.
inline constexpr absl::Duration kKeepEnded = absl::Seconds(30);
inline constexpr size_t kKeepEndedMost = 10'000;
// For so long folds are not started because earlier Jobs may have trained them; of a
// window at most this share.
inline constexpr absl::Duration kReuseWait = absl::Seconds(5);
inline constexpr double kReuseShare = 0.1;
// A Worker that does not list an Attempt in its heartbeats for so long has lost it.
inline constexpr absl::Duration kUnlistedGrace = absl::Seconds(5);
// Figures that take a walk over everything that runs are made anew in each turn while no more
// Attempts run than that; else once in kWalkInterval.
inline constexpr size_t kFewAttempts = 64;
inline constexpr absl::Duration kWalkInterval = absl::Seconds(1);
// A turn starts at most so many tasks; the next one goes on, so that no deadline waits for all.
inline constexpr size_t kMostStarts = 1'000;

// Whether what the Job's next fold lacks is told with that reason (NoteWaits).
inline bool LacksSlots(PendingReason reason) {
  return reason == PendingReason::kResources || reason == PendingReason::kPriority ||
         reason == PendingReason::kNoMatchingWorker;
}

class ControlCore::Impl {
 public:
  explicit Impl(CoreOptions options)
      : options_(options),
        shares_(options.share_half_life),
        limits_(options.max_owner_jobs, options.max_owner_slots) {}

  void Restore(Snapshot snapshot, absl::Time now);
  Turn Step(std::vector<Event> events, absl::Time now);
  bool HasJob(const std::string& id) const { return Find(id) != nullptr; }
  std::shared_ptr<const Job> FindJob(const std::string& id) const;
  std::vector<std::shared_ptr<const Job>> ActiveJobs() const;

 private:
  // ---- what clients ask for: requests.cc ----
  void Handle(Submit& event);
  // Whether the Jobs of the batch that begins there fit within what their owners may have.
  void CheckBatch(const std::vector<Event>& events, size_t begin);
  absl::Status CheckLimitsOf(const Submit& event) const;
  bool KnowsRequest(const Job& job) const;
  void Handle(Finish& event);
  void Handle(Cancel& event);
  void Handle(Pause& event);
  void Handle(Resume& event);
  void Handle(Update& event);
  void Handle(Propose& event);
  static absl::Status OverAlready(const Job& job);
  JobEntry* FindLive(CallId call, const std::string& job, bool cancels = false);
  absl::Status CheckUpdate(const JobEntry& entry, const Update& event) const;
  static absl::Time UpdatedDeadline(const Job& job, const Update& event);
  void MoveDeadline(JobEntry& entry, absl::Time deadline);
  void TellDeadline(JobEntry& entry, LiveAttempt& live);
  void LeaveQueues(JobEntry& entry);
  void Handle(ShutdownRequested& event);
  void AddEntry(std::shared_ptr<Job> job);
  void Answer(CallId call, absl::Status status, JobEntry* entry, bool created = false);
  bool AnswerKnownRequest(const Submit& event);
  void ForgetEnded();
  JobEntry* Find(const std::string& id) const;
  void Touch(JobEntry& entry);
  Job& EditLive(JobEntry& entry);     // changes nobody stores
  Job& Edit(JobEntry& entry);         // changes to be stored
  Job& EditDurably(JobEntry& entry);  // changes someone waits for
  void Log(const JobEntry& entry, const char* kind, std::string detail);
  void Decide(JobEntry& entry, DecisionRule rule, std::string cause, std::string from,
              std::string to, std::string effect = "");
  void AddDecision(JobEntry& entry, Decision decision);  // `at` is filled in
  void Advance(JobEntry& entry);
  void UpdateQueues(JobEntry& entry);
  void JoinTraining(JobEntry& entry);
  bool LeaveTraining(JobEntry& entry);  // false: it was not there
  void UpdateState(JobEntry& entry);
  void SetState(JobEntry& entry, JobState state);
  void SetWakeup(JobEntry& entry);
  void CollectWakeups(const JobEntry& entry, absl::Time* wake) const;
  void Remove(JobEntry& entry);
  void CloseTurn();
  void KeepTime(absl::Time now);
  PendingReason WhyPending(const JobEntry& entry, int position) const;
  int CoarsePosition(const JobEntry& entry) const;

  // ---- Jobs that wait for the ends of others: after.cc ----
  // At Submit: takes out of Job::after what has ended since it was checked.
  absl::Status SettleAfter(Job& job) const;
  void RestoreAfter(JobEntry& entry);
  void AdvanceWaiting(JobEntry& entry);
  void AdvanceCancelled(JobEntry& entry);
  void TellEnded();
  void TellEnded(JobEntry& entry, const std::string& ended, JobState state);
  static std::string AfterText(const Job& job);

  // ---- retention.cc ----
  void Handle(FileDamaged& event);
  void Handle(Pin& event);
  void Handle(DeleteJob& event);
  void Handle(PurgeJob& event);
  void Handle(ForgetHistory& event);
  absl::Status CheckDeletion(const DeleteJob& event) const;
  // NotFound: the Job is to use one that was deleted since its Submit was checked.
  absl::Status CheckSources(const Job& job) const;
  void CountSources(const Job& job, int change);
  void ForgetDeleted();

  // ---- who is next: train_queue.cc ----
  // Those that ask for the same, with a deadline or without.
  struct QueueName {
    GangShape shape;
    bool timeless = false;  // they have no deadline
    std::string owner;      // empty: those of all owners
    friend bool operator<(const QueueName& a, const QueueName& b) {
      return std::tie(a.shape, a.timeless, a.owner) < std::tie(b.shape, b.timeless, b.owner);
    }
  };
  using TrainQueues = std::map<QueueName, JobLine>;
  QueueName QueueNameOf(const JobEntry& entry) const;
  void JoinTrainQueue(JobEntry& entry, const Urgency& urgency);
  void LeaveTrainQueue(JobEntry& entry);
  absl::Duration LeastLeft(const JobEntry& entry) const;
  absl::Duration LongestFold(const JobEntry& entry) const;
  std::vector<JobEntry*> NextInLine(TrainQueues::const_iterator first, size_t most) const;
  // So many Jobs of a queue may have slots by the limit of its owner, and are looked at.
  struct WithinLimit {
    size_t may_start = std::numeric_limits<size_t>::max();
    size_t seen = std::numeric_limits<size_t>::max();
  };
  WithinLimit WithinLimitOf(const QueueName& queue) const;
  // Jobs of that shape that wait because their owners use what they may, in no order.
  std::vector<JobEntry*> HeldBack(TrainQueues::const_iterator first, size_t most) const;
  bool IsHeldBack(const JobEntry& entry) const;
  std::string HeldBackText(const JobEntry& entry) const;
  TrainQueues::const_iterator SkipShape(TrainQueues::const_iterator queue) const;
  bool GangsWait() const {
    return !train_queue_.empty() && train_queue_.rbegin()->first.shape.slots > 1;
  }
  int PlaceOf(const JobEntry& entry) const;
  absl::Time ExpectedEnd(const LiveAttempt& live) const;

  // ---- what waiting Jobs are told: waits.cc ----
  bool NotesDue() const;
  void NoteWaits();
  void NotePrepareWaits();
  void TellWait(JobEntry& entry, std::string text, absl::Time start);
  std::string WaitText(const JobEntry& entry, const GangShape& shape, const Outlook& outlook) const;
  void NoteLateStart(JobEntry& entry);

  // ---- folds that make room for a higher class: preempt.cc ----
  void Preempt();
  void EndPreempted();
  int LowestRunning();
  std::vector<JobEntry*> Starved(std::vector<Claim>& line);
  Holding HoldingOf(const LiveAttempt& live) const;
  void ChooseAndStop(const std::vector<Claim>& line, const std::vector<JobEntry*>& entries);
  void StopFor(JobEntry& entry, const std::vector<int64_t>& attempts);
  void TellAgain();
  static std::string PreemptedText(const Job& job);

  // ---- starting: dispatch.cc ----
  void Dispatch();
  void DispatchPrepares();
  void DispatchFolds();
  // Tells the board when slots that are held will be free.
  void NoteEnds();
  // The idlest Worker that suits the Job, if possible with the labels that it asks for; null: none
  // takes tasks.
  const WorkerState* IdlestFor(const JobEntry& entry) const;
  const WorkerState* IdlestOf(const IdleWorkers& idle, const Constraints& asked) const;
  bool NobodyIsIdle() const { return idle_.at("").empty(); }
  Candidate MakeCandidate(const JobEntry& entry, size_t most, bool timed) const;
  bool FoldsWait(const Job& job) const;
  LiveAttempt& StartAttempt(JobEntry& entry, int task, std::vector<GangPart> parts);
  void SendStart(JobEntry& entry, const LiveAttempt& live, StartCommand command);
  void StartFold(JobEntry& entry, int task, const Placement& placement);
  int GangsOfMachines(const JobEntry& entry) const;  // that all Workers together have for it
  int Gangs(const JobEntry& entry) const;            // of those, what its owner may have
  static bool MaySpan(const JobEntry& entry);
  // The gang that its next fold gets.
  GangShape ShapeNow(const JobEntry& entry) const;
  absl::Time WholeGangUntil(const JobEntry& entry) const;
  void NoteSmallerGang(JobEntry& entry, const Placement& placement);
  void Handle(GangReady& event);

  // ---- facts.cc ----
  void Handle(WorkerFact& event);
  void Handle(CheckpointFound& event);
  void Apply(LiveAttempt& live, facts::TableReady& fact);
  void Apply(LiveAttempt& live, facts::FloorReady& fact);
  void Apply(LiveAttempt& live, facts::Started& fact);
  void Apply(LiveAttempt& live, facts::Probe& fact);
  void Apply(LiveAttempt& live, facts::Progress& fact);
  void Apply(LiveAttempt& live, facts::Epoch& fact);
  void Apply(LiveAttempt& live, facts::CheckpointSaved& fact);
  void Apply(LiveAttempt& live, facts::FoldSaved& fact);
  void Apply(LiveAttempt& live, facts::Ended& fact);
  void Apply(LiveAttempt& live, facts::Decision& fact);
  void Apply(LiveAttempt& live, facts::Resources& fact);
  void Apply(LiveAttempt& live, facts::Importance& fact);
  void Apply(LiveAttempt& live, facts::Transfers& fact);
  static void TakeBack(LiveAttempt& live, Task& task, const facts::Started& fact);
  bool HeardAllAlong(const LiveAttempt& live) const;
  void MarkPace(LiveAttempt& live, std::vector<double>& epochs, double epoch_s,
                const facts::Epoch& fact) const;
  void AddMetric(const LiveAttempt& live, int64_t step, double epoch, std::string name,
                 double value);
  void Acknowledge(const WorkerFact& fact);
  void AbortStale(const std::string& worker, int64_t attempt, const char* why);

  // ---- folds of earlier Jobs: reuse.cc ----
  void Handle(Reused& event);
  void AskReuse(JobEntry& entry);
  bool AwaitsReuse(const JobEntry& entry) const;
  void TakeOver(JobEntry& entry, TrainedFold fold);

  // ---- endings: attempts.cc ----
  void CloseAttempt(LiveAttempt& live, AttemptEndReason reason, const std::string& message);
  // Closes it and lets its task go on from there.
  void EndAttempt(LiveAttempt& live, AttemptEndReason reason, const std::string& message);
  void PrepareEnded(JobEntry& entry, AttemptEndReason reason, const std::string& message);
  void FoldEnded(JobEntry& entry, int task, AttemptEndReason reason, const std::string& message);
  static bool HasBegun(const Job& job, int task);
  // Whether the Job has, or may still get, predictions besides that fold's next try.
  bool HasOtherFolds(const JobEntry& entry, int task) const;
  void TakeSmallerBatch(JobEntry& entry, const LiveAttempt& live, AttemptEndReason reason);
  void RetryOrSettle(JobEntry& entry, int task, Fault fault, AttemptEndReason reason,
                     const std::string& message);
  void DecideRetry(JobEntry& entry, const Task& task, const std::string& ended,
                   const std::string& to);
  void DecideRetryTogether(JobEntry& entry, const Task& task, const std::string& ended,
                           const std::string& to);
  void SettleFold(JobEntry& entry, int task, const std::string& message);
  void SendStop(LiveAttempt& live, StopMode mode, StopReason reason, const std::string& why);
  void SendReplan(const LiveAttempt& live, ReplanCommand command);
  // One part of several has ended.
  void PartEnded(LiveAttempt& live, const AttemptPart& part, const facts::Ended& fact);
  using AttemptIt = std::map<int64_t, LiveAttempt>::iterator;
  LiveAttempt& AddLive(LiveAttempt live);
  // With its last part the Attempt goes, too.
  void ErasePart(AttemptIt it, AttemptPart& part);
  // Its Worker does not run it.
  void LosePart(AttemptIt it, AttemptPart& part);
  void SetMissingBy(const LiveAttempt& live, AttemptPart& part, absl::Time by);
  // Predictions that its Worker has published and could not tell of.
  void TakePublishedMember(JobEntry& entry, int task);
  static double LeastRowsSince(const Job& job, int64_t attempt);
  LiveAttempt* OpenAttempt(const Task& task);

  // ---- what folds cost: costs.cc ----
  FoldCost CostOfFold(const JobEntry& entry, int task) const;
  bool PacedWithinEpoch(const JobEntry& entry, int task) const;
  const FoldCost& TypicalFold(const JobEntry& entry) const;
  const TransferCost& TransferCostOf(const JobEntry& entry) const;
  // From the start of an Attempt that starts now to its first step.
  double StartSeconds(const JobEntry& entry) const;
  double FinishingSeconds(const JobEntry& entry, int trial) const;

  // ---- the clock: planning.cc ----
  Window WindowOf(const JobEntry& entry) const;
  absl::Duration FinalizeLeadOf(const JobEntry& entry) const;
  absl::Time FinalizeAt(const JobEntry& entry) const;
  absl::Time SettleAt(const JobEntry& entry) const;
  absl::Time ConcludeAt(const JobEntry& entry) const;
  absl::Time TrainEndOf(const JobEntry& entry) const;
  // The same for a model that takes so long to stop and predict.
  absl::Time TrainEndWith(const JobEntry& entry, double stop_s) const;
  struct StartRule {
    FoldCost cost;
    absl::Time train_end;
    bool any_time = false;  // see AnswersAtAnyTime
    bool program = false;   // of the user: it goes on from what it has saved
    // The last moment at which it still makes sense to start that fold.
    absl::Time Latest(const Task& task) const;
  };
  FoldCost ShortestEpoch(const JobEntry& entry) const;
  // ended: a task whose Attempt is over, and which is still noted as running; -1: there is none.
  StartRule StartRuleOf(const JobEntry& entry, int ended = -1) const;
  static bool PlanCut(const Job& job);
  static double RowsOf(const Job& job);
  int ParallelFolds(const JobEntry& entry) const;
  double Sharing(const JobEntry& entry) const;
  double Turns(const JobEntry& entry) const;
  absl::Time TurnEnd(const JobEntry& entry);
  absl::Time FirstTrainStart(const JobEntry& entry) const;
  absl::Duration ReplanInterval(const JobEntry& entry) const;
  bool FirstFoldDue(const JobEntry& entry) const;
  absl::Duration NewsGrace(const JobEntry& entry) const;
  bool AwaitsNews(const JobEntry& entry) const;
  void PlanWhenDue(JobEntry& entry);
  void Replan(JobEntry& entry, Trigger trigger);
  void ApplyFolds(JobEntry& entry, const PlanOutput& out, int folds_before);
  bool Confident(const JobEntry& entry) const;
  bool AllSettled(const Job& job) const;

  // ---- folds whose turn was over: comebacks.cc ----
  static constexpr char kCutFromPlan[] = "cut from the plan";  // the message of such a fold
  static bool HadItsTurn(const Job& job, const Task& task);
  static bool ComesBack(const Job& job, const Task& task);
  static bool OnlyComesBack(const Job& job);
  static double LeastEpochs(const Job& job, double done);
  static int MostEpochs(const Job& job);
  absl::Duration LeastRun(const JobEntry& entry, double done) const;
  absl::Time LatestComeback(const JobEntry& entry, const Task& task) const;
  bool PaysToStart(const JobEntry& entry, const Task& task) const;
  void PlanComeback(JobEntry& entry, const Task& task, absl::Time stop_at);
  bool CouldGoOn(const JobEntry& entry, const Task& task) const;
  bool AwaitsEndOfStopped(const JobEntry& entry) const;
  bool TakesTimeLeft(const JobEntry& entry) const;
  std::string TimeLeftText(const JobEntry& entry, absl::string_view why) const;
  void BringBackStopped(JobEntry& entry);
  void BringBackCut(JobEntry& entry);

  bool AwaitsFloor(const Job& job) const;
  void DropHopeless(JobEntry& entry);
  // The running fold's, or (null) that of one that starts now; `back`: that one comes back.
  absl::Time StopOf(const JobEntry& entry, const LiveAttempt* live,
                    const Task* back = nullptr) const;
  void SendReplans(JobEntry& entry);
  void StopLate(JobEntry& entry);
  void StopPaused(JobEntry& entry);
  void ReplanTraining();
  bool SharesMoved();
  void ReplanAll();

  // ---- extra seeds: extra_seeds.cc ----
  void ApplyExtraSeeds(JobEntry& entry, const PlanOutput& out);
  // Brings an extra seed into the Plan: one that was dropped before it began, or the next.
  void AddExtraSeed(JobEntry& entry, int epochs);
  // The place of a fold's model in Job::tasks, where a new one is made if it has none yet.
  int FindOrAddTask(JobEntry& entry, int fold, int trial, int seed);

  // ---- further trials: trials.cc ----
  TrialsSeen SeenOf(const JobEntry& entry) const;
  TrialsInput TrialsOf(const JobEntry& entry) const;
  void NoteEndOfTrials(JobEntry& entry, const TrialsInput& in, const TrialsOutput& out);
  bool FirstTrialNeedsMore(const JobEntry& entry) const;
  bool CutFoldsHaveTime(const JobEntry& entry) const;
  void StartTrials(JobEntry& entry);
  void StopAtRung(LiveAttempt& live, const facts::Epoch& fact);
  bool HasSettings(JobEntry& entry, int trial, const TrialsInput& in, int planned);
  void NoteFewerTrials(JobEntry& entry, const TrialsInput& in, int planned);
  void MakeRoomForFolds(JobEntry& entry);

  // ---- trials that clients propose: proposals.cc ----
  absl::Status TakesProposals(const Job& job) const;
  // A fold of a further trial, as short as one may be.
  static Task OneEpoch();
  absl::Time ProposalDue(const JobEntry& entry) const;
  bool DrawsItself(const JobEntry& entry) const;
  void DecideOnce(JobEntry& entry, const TrialNote& note, std::string cause, std::string from);

  // ---- quotas.cc ----
  QuotaAccount::Running RunningOn(QuotaAccount& account) const;
  void Handle(SetQuota& event);
  void Handle(RemoveQuota& event);
  void Handle(ListQuotas& event);
  QuotaState StateOf(QuotaAccount& account) const;
  void RestoreQuotas(const Snapshot& snapshot);
  void Charge(const LiveAttempt& live);
  void RunOnQuotas(const LiveAttempt& live);
  absl::Status CheckQuotasOf(const Job& job);
  void NoteQuotas(JobEntry& entry);
  absl::Time QuotaEndOf(const JobEntry& entry) const;
  void CheckQuotas();
  void StopForQuota(JobEntry& entry, const std::string& used);

  // ---- the Prediction: finalization.cc ----
  void Handle(Published& event);
  void Adopt(JobEntry& entry, PublishedPrediction prediction);
  static bool PredictionIsCurrent(const Job& job);
  void MaybePublish(JobEntry& entry, bool final);
  void AskDisk(JobEntry& entry);
  bool FloorPending(const JobEntry& entry) const;
  bool FinalizingDue(const JobEntry& entry) const;
  bool AwaitsAnswers(const JobEntry& entry) const;
  absl::Time LastCallOf(const JobEntry& entry) const;
  void NoteCutOff(JobEntry& entry, const std::vector<int>& folds);
  void NoteEndedEarly(JobEntry& entry);
  void NoteUnpublished(JobEntry& entry);
  void NoteUnusedTime(JobEntry& entry);
  void EnterFinalizing(JobEntry& entry);
  void AdvanceFinalizing(JobEntry& entry);
  void NoteLeftOut(JobEntry& entry);
  void NoteModelsLeftOut(JobEntry& entry);
  // Tells that a second layer joins the trials, with the scores that it was chosen by.
  void NoteSecondLayer(JobEntry& entry);
  void Conclude(JobEntry& entry);
  void CorrectQuality(JobEntry& entry);
  void End(JobEntry& entry, JobState state, JobEndReason reason, std::string message);
  absl::Time FinishedAt(const JobEntry& entry) const;

  // ---- Jobs that train nothing: inference.cc ----
  static bool TrainsNothing(const Job& job) {
    return job.tasks.size() == 1 && UsesModels(job.tasks[0].kind);
  }
  void AdvanceInference(JobEntry& entry);
  void FinishInference(JobEntry& entry);
  void InferenceEnded(JobEntry& entry, AttemptEndReason reason, const std::string& message);
  void ConcludeInference(JobEntry& entry, JobEndReason reason, const std::string& message);

  // ---- workers.cc ----
  void Handle(WorkerAttached& event);
  void Handle(WorkerHeartbeat& event);
  void Handle(WorkerDetached& event);
  void Handle(WorkerDied& event);
  void CheckWorkers();
  void LoseWorker(WorkerState& worker, const char* why);
  void AwaitWorkers();
  absl::Time NextWorkerCheck() const;
  void StoreWorker(WorkerState& worker);
  // Silence that was waited for is stored this often, each time with what comes until the next one.
  absl::Duration SilenceStep() const { return options_.lease / 8; }
  bool IsAwaited(const WorkerState& worker) const {
    return !options_.standalone && !worker.attached && !worker.attempts.empty();
  }
  // Describes a Worker to the scheduler, with all of its slots free.
  static WorkerSlots SlotsOf(const WorkerState& worker);
  // Each brings indexes up to date. NoteWorker: all, after a change of the Worker but of last_seen;
  // NoteSlots: after a change of what its slots do; NoteAttempts: of what it runs without slots.
  void NoteWorker(WorkerState& worker);
  void NoteSlots(const WorkerState& worker);
  void NoteAttempts(WorkerState& worker);
  void NoteIdle(WorkerState& worker);
  void SetCheck(WorkerState& worker);

  // ---- Workers that take nothing new: drain.cc ----
  void Handle(UpdateWorker& event);
  absl::Status NoSuchWorker(const std::string& id) const;
  void NoteMode(const WorkerState& worker);
  void RestoreWorkers(const Snapshot& snapshot);
  void DrainWorkers();
  void MoveAttempts(const std::string& worker);

  const CoreOptions options_;
  absl::Time now_ = absl::InfinitePast();
  absl::Time wanted_wakeup_ = absl::InfiniteFuture();  // of the last turn
  absl::Time time_stored_ = absl::InfinitePast();
  absl::Time shrink_from_ = absl::InfinitePast();  // until then lost Workers may still come back
  absl::Time awaited_at_ = absl::InfinitePast();   // when that was last stored
  bool awaited_is_stored_ = false;                 // and is more than nothing
  bool shutting_down_ = false;
  int64_t last_attempt_ = 0;
  uint64_t next_sequence_ = 1;

  // Hash maps are for looking up; what is walked is ordered, so that equal turns
  // follow from equal events.
  absl::flat_hash_map<std::string, std::unique_ptr<JobEntry>> jobs_;
  using RequestKey = std::pair<std::string, std::string>;  // owner, request_id
  absl::flat_hash_map<RequestKey, JobEntry*> requests_;
  // The requests of Jobs that have ended: the shell may have asked the store just before.
  absl::flat_hash_map<RequestKey, std::shared_ptr<const Job>> ended_;
  absl::flat_hash_map<std::string, JobState> ended_states_;                  // of the same Jobs
  std::deque<std::tuple<absl::Time, RequestKey, std::string>> ended_order_;  // ..., id
  // By the Job that others wait for, those.
  absl::flat_hash_map<std::string, std::vector<std::string>> waiting_;
  absl::flat_hash_map<std::string, int> sources_;  // Jobs that others use, which are not over
  absl::flat_hash_set<std::string> deleted_;       // a while ago at most
  std::deque<std::pair<absl::Time, std::string>> deleted_order_;
  std::map<int64_t, LiveAttempt> attempts_;
  // By AttemptPart::missing_by; the Attempt, and its part's first rank.
  std::set<std::tuple<absl::Time, int64_t, int>> missing_;
  absl::Time ends_noted_at_ = absl::InfinitePast();
  std::map<std::string, WorkerState> workers_;
  SlotBoard board_;    // of Workers that take tasks
  Capacity expected_;  // of Workers that are expected and open
  // Workers that take tasks, by label; those of the empty one are all.
  std::map<std::string, IdleWorkers> idle_ = {{"", {}}};
  // When a Worker may be lost or drained. It has been heard of meanwhile, in most cases.
  std::set<std::pair<absl::Time, std::string>> worker_checks_;
  std::set<std::string> draining_;                       // and still running something
  mutable std::map<QuotaSubject, QuotaAccount> quotas_;  // RunningOn keeps figures there
  int64_t quota_changes_ = 0;
  absl::Time quota_check_at_ = absl::InfiniteFuture();
  JobLine prepare_queue_;
  TrainQueues train_queue_;
  OwnerShares shares_;
  OwnerLimits limits_;
  // The Jobs in front of the line at noted_at_, and when each may start.
  std::vector<std::pair<Urgency, absl::Time>> line_;
  absl::Time noted_at_ = absl::InfinitePast();
  absl::Time prepares_noted_at_ = absl::InfinitePast();
  // Attempts that were told to make room, by the end of their grace.
  std::set<std::pair<absl::Time, int64_t>> preempted_;
  absl::Time preempt_check_at_ = absl::InfiniteFuture();
  absl::Time preempt_walk_at_ = absl::InfinitePast();
  int lowest_ = 0;  // priority of folds that run, as of lowest_at_
  absl::Time lowest_at_ = absl::InfinitePast();
  // Jobs whose folds run or could; those among them with a deadline.
  std::map<uint64_t, JobEntry*> training_;
  std::set<uint64_t> training_in_time_;
  // Jobs of which only folds that come back wait. They have no share of the slots.
  std::map<uint64_t, JobEntry*> comebacks_;
  ShareBasis planned_shares_;  // of the last ReplanAll
  bool shares_changed_ = false;
  absl::Time shares_at_ = absl::InfinitePast();
  std::map<std::pair<absl::Time, uint64_t>, JobEntry*> wakeups_;

  // The following members belong to the current turn.
  Turn turn_;
  std::vector<JobEntry*> touched_;
  std::deque<std::pair<std::string, JobState>> ended_now_;  // those after it do not know yet
  std::vector<JobEntry*> start_owners_;                     // by turn_.starts
  std::vector<JobEntry*> reply_owners_;                     // by turn_.replies
  std::map<std::pair<std::string, uint64_t>, int64_t> acks_;
  std::set<int64_t> aborted_;
  bool more_to_start_ = false;
  std::pair<CallId, absl::Status> batch_;  // the last one that was checked
};

}  // namespace traind
