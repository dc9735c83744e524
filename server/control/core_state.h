// The control core's own state of Jobs, Attempts, Workers and quotas, besides the stored one.
// Threads: plain values, owned by the core.
#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/domain/job.h"
#include "server/domain/worker_mode.h"
#include "server/plan/epoch_rungs.h"
#include "server/plan/planner.h"
#include "server/plan/quota_use.h"
#include "server/schedule/capacity.h"
#include "server/schedule/scheduler.h"

namespace traind {

// How far the Job's Prediction is.
struct Publication {
  bool wanted = false;         // members or floor are newer than the last command
  bool running = false;        // a command was sent and is not answered
  bool final_running = false;  // that command makes the last Prediction
  bool final_done = false;     // the last Prediction was made
  bool asked_disk = false;     // whether a Prediction stands of which nothing was heard
  bool disk_told = false;      // that was answered
  absl::Time disk_by = absl::InfiniteFuture();  // an answer that comes later is not waited for
  absl::Time sent_at;
  absl::Time not_before = absl::InfinitePast();  // after a failure: no command earlier than this
  absl::Duration cost;                           // the longest seen; 0: not measured
  int failures = 0;                              // in a row
  absl::Status error;                            // of the last failure
};

// The search for folds that earlier Jobs have trained.
struct ReuseSearch {
  bool asked = false;
  bool answered = false;
  absl::Time answer_by = absl::InfinitePast();  // without an answer by then every fold is trained
};

// What files that travel cost a fold of the Job; 0: they do not, or nothing is known.
struct TransferCost {
  double fetch_s = 0;  // before its first step, where it starts now
  double send_s = 0;   // its results, at its end
};

// Measurements of the Job's training, and the planner's conclusions from them.
struct Pace {
  bool replan_wanted = false;
  bool first_fold_checked = false;  // B3
  bool trusted = false;             // the Plan was made from more than timed steps
  bool stop_checked = false;        // B5, once when its share is reached
  bool stopping = false;            // B5 holds
  absl::Time planned_at = absl::InfinitePast();
  // A Worker that was away has told by then what became of its folds.
  absl::Time news_by = absl::InfinitePast();
  absl::Time estimated_finish = absl::InfiniteFuture();
  double overhead_s = 0;  // from an Attempt's start to its first step, without what it fetched
  // The longest time from the last epoch of a fold that was done to its answers, by kind of model.
  std::map<std::string, double> finishing_s;
  mutable std::optional<FoldCost> typical;        // of its folds; empty: they have changed
  mutable std::optional<TransferCost> transfers;  // likewise
  // For each task: how long its last epochs took from end to end, at most three.
  std::vector<std::vector<double>> epochs_s;
};

// The retry that a Job decided last. Tasks that are lost in the same way at the same moment join
// it.
struct LastRetry {
  absl::Time at = absl::InfinitePast();
  size_t decision = 0;             // its place in Job::decisions
  std::string ended;               // how the Attempts of its tasks ended
  std::vector<std::string> tasks;  // their names
  std::string to;                  // of the last of them
};

// These facts decide whether a further model starts, apart from the time, which only gets less.
// While none started and all of it is the same, none will start.
struct TrialsSeen {
  int idle = 0;        // gangs
  size_t settled = 0;  // tasks
  size_t plans = 0;
  int prediction = 0;     // its number
  bool answered = false;  // nothing is being published
  absl::Time deadline;
  int64_t quotas = 0;  // how often they were changed
  size_t drawn = 0;    // trials with settings

  bool operator==(const TrialsSeen& other) const {
    return idle == other.idle && settled == other.settled && plans == other.plans &&
           prediction == other.prediction && answered == other.answered &&
           deadline == other.deadline && quotas == other.quotas && drawn == other.drawn;
  }
};

// A Job that is not terminal, with the part of its state that is not stored: a restart makes it
// again from the store (Restore) or does without it.
struct JobEntry {
  uint64_t sequence = 0;           // of acceptance
  std::shared_ptr<const Job> job;  // as of the last turn; null in the turn of its Submit
  std::shared_ptr<Job> draft;      // as this turn has changed it
  bool touched = false;            // this turn looks at it
  bool stored = false;             // this turn's changes have to be stored

  // Where the Core's indexes have it.
  std::optional<Urgency> prepare_key;
  std::optional<Urgency> train_key;
  int place = 0;  // with a train_key, among those that wait; 0: far behind
  // Since when a fold could start and nothing of it runs.
  absl::Time starved_since = absl::InfiniteFuture();
  GangShape shape;
  absl::Time wake_at = absl::InfiniteFuture();

  Publication publication;
  ReuseSearch reuse;
  Pace pace;
  LastRetry last_retry;
  std::optional<TrialsSeen> trials_seen;  // when nothing could start
  EpochRungs rungs;
  // A further trial would start now if a client proposed its settings. The Job does not end while
  // it waits.
  bool awaits_proposal = false;
  absl::Time proposed_at = absl::InfinitePast();           // the last one, or the restart after it
  mutable std::optional<std::vector<double>> trial_works;  // unset: nobody has asked yet
  absl::Time finish_at = absl::InfiniteFuture();           // when the user asked for it
  std::string home;                                        // the Worker that read the data
  std::vector<CallId> cancels;                             // calls that wait for its end

  const Job& view() const { return draft ? *draft : *job; }
};

// A Worker's share of an Attempt: slots on which it runs Ranks.
struct AttemptPart {
  std::string worker;
  std::vector<int> slots;  // held until `over`
  int first_rank = 0;
  bool over = false;   // its Worker runs nothing of it any more
  bool ready = false;  // its Ranks wait for the others
  int port = 0;        // told with `ready`; rank 0 can listen there
  // Its Worker does not list it: lost if nothing is heard of it by then.
  absl::Time missing_by = absl::InfiniteFuture();
};

// An Attempt that Workers may still run. It is closed as soon as one of its parts is lost.
struct LiveAttempt {
  int64_t id = 0;
  JobEntry* job = nullptr;  // null: the Job is over
  std::string owner;        // of the Job
  int task = 0;
  TaskKind kind = TaskKind::kTrain;
  std::vector<AttemptPart> parts;  // in the order of their ranks
  bool open = true;                // may still commit
  bool saved_last = false;         // its fold is settled, it only has to end
  absl::Time started_at;
  absl::Time closed_at = absl::InfiniteFuture();
  absl::Time expected_end = absl::InfiniteFuture();  // as of the last NoteEnds; not known before
  bool aborted = false;                              // its Workers were told to kill it
  bool met = false;                                  // its parts were told where rank 0 listens
  std::string preempted_for;                         // the Job for which it was told to go

  // The values that its Worker was told last.
  int epochs = -1;
  double row_share = 1;
  absl::Time stop_at = absl::InfiniteFuture();
  bool plan_cut = false;
  // Of a fold that came back (comebacks.cc): the epochs that it had when it started.
  std::optional<double> back_after;
  bool stop_sent = false;
  absl::Time replanned_at = absl::InfinitePast();
  // The values that the Worker told.
  int batch = 0;
  // Ends of epochs, a few a second: what short ones take is told by many of them.
  std::deque<std::pair<absl::Time, int>> marks;
  bool paced = false;
  double marked_row_share = 1;  // that those epochs had
  absl::Time epoch_stored_at = absl::InfinitePast();
  absl::Time first_step_at = absl::InfiniteFuture();
  int64_t first_step = 0;
  int last_epoch = 0;
  absl::Time last_epoch_at = absl::InfiniteFuture();
  absl::Time metric_at = absl::InfinitePast();

  // The Worker of rank 0: it checkpoints and tells the facts.
  const std::string& lead() const { return parts[0].worker; }
  bool spans() const { return parts.size() > 1; }
  // Whether the end of that part is the end of the Attempt. Once the fold has answered, the ranks
  // of other Workers only have to go.
  bool needs(const AttemptPart& part) const {
    return open && (part.first_rank == 0 || !saved_last);
  }
  int SlotCount() const {
    size_t slots = 0;
    for (const AttemptPart& part : parts) slots += part.slots.size();
    return static_cast<int>(slots);
  }
  // The part that this Worker still runs, or may; null: none.
  AttemptPart* PartOn(const std::string& worker) {
    for (AttemptPart& part : parts) {
      if (part.worker == worker && !part.over) return &part;
    }
    return nullptr;
  }
};

struct WorkerState {
  std::string id, boot, hostname;
  std::string address;  // at which the Ranks of other Workers reach its own; empty: none do
  std::set<std::string> labels;  // "rack=a"
  uint64_t session = 0;
  bool attached = false;
  bool expected = false;  // attached, or gone for less than a lease
  absl::Time attached_at = absl::InfinitePast();
  absl::Time last_seen;  // of traind's time; what passed while it was away is left out
  absl::Time row_at = absl::InfinitePast();  // when its row was last stored
  std::vector<Slot> slots;
  bool own_folder = false;              // its state folder is not traind's
  std::set<int64_t> attempts;           // LiveAttempts of which it may still run a part
  WorkerMode mode = WorkerMode::kNone;  // as an operator wants it
  absl::Time drain_at = absl::InfiniteFuture();
  bool leaving = false;  // it was told to stop
  // Attempts that it runs and should not; until they have ended its slots are not
  // to be trusted.
  std::set<int64_t> foreign;

  // Where the Core's indexes have it.
  int prepares = 0;                           // of its attempts
  std::optional<int> idle_as;                 // by its prepares, while it takes tasks
  std::set<std::string> idle_labels;          // with these
  std::optional<Capacity::Kind> expected_as;  // while it is expected and open
  absl::Time check_at = absl::InfiniteFuture();

  bool takes_tasks() const { return attached && open(); }
  bool open() const { return mode == WorkerMode::kNone && !leaving; }
};

// Workers that take tasks by their prepares, idlest first.
using IdleWorkers = std::set<std::pair<int, std::string>>;

struct QuotaAccount {
  explicit QuotaAccount(QuotaUse quota_use) : use(std::move(quota_use)) {}

  QuotaUse use;
  double used_s = 0;  // by ended Attempts, as of this turn
  int warned = 0;     // the last mark that was told

  // Folds that run on this account.
  struct Running {
    double slots = 0, used_s = 0;
    double stop_s = 0;  // from the word to stop until they are free
  };
  Running walked;  // as of walked_at
  absl::Time walked_at = absl::InfinitePast();
  // Slots that are held since then, or are no longer held (less than 0).
  void Run(absl::Time started_at, double more_slots);
};

// What the shares of running Jobs depend on.
struct ShareBasis {
  size_t jobs = 0, in_time = 0;
  int slots = 0;
};

}  // namespace traind
