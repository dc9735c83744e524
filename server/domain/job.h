// The values that the store keeps and the control core decides on. Their enums come from
// proto/job.proto.
//
//   QUEUED -1-> PLANNING -2-> RUNNING -3-> FINALIZING -4-> SUCCEEDED
//      |            |            |              `-5-> FAILED
//      `------------+-----6------+--------------> CANCELLED
//   1  its PREPARE is leased          2  its first TRAIN is leased (back to QUEUED when
//   3  no TRAIN is left to run, time     none is and none can be)
//      is up, or the user said Finish 4  the last Prediction stands (none asked for: models do)
//   5  not even a floor stands        6  the user said so
// A Job that predicts or serves with another one's models trains nothing: QUEUED, RUNNING
// while its one task holds a Lease, then terminal.
// PAUSED is beside QUEUED, PLANNING and RUNNING: on request, and until the user says
// Resume or the time is up.
// Terminal states are for ever. A terminal Job names its end reason.
#pragma once

#include <absl/time/time.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/facts/facts.h"
#include "common/facts/reasons.h"
#include "common/publish/prediction.h"
#include "proto/plain/job_enums.h"
#include "server/domain/boxed.h"
#include "server/domain/decision.h"
#include "server/domain/gang_part.h"
#include "server/domain/spec.h"

namespace traind {

using plain::JobEndReason;
using plain::JobState;
using plain::PendingReason;
using plain::TaskState;

inline bool IsTerminal(JobState state) {
  return state == JobState::kSucceeded || state == JobState::kFailed ||
         state == JobState::kCancelled;
}

inline bool IsTerminal(TaskState state) {
  return state != TaskState::kPending && state != TaskState::kRunning;
}

struct Plan {
  int revision = 0;
  int folds = 0;
  int epochs = 0;
  int models = 0;  // of all folds: more than folds where extra ones are in it
  int ranks = 1;   // per fold
  int parallel_folds = 1;
  std::optional<double> step_s;
  std::optional<absl::Duration> estimate;
  absl::Duration reserve;
  absl::Time at;
  double row_share = 1;  // share of a fold's training rows that an epoch sees
};

struct Checkpoint {
  int64_t attempt = 0;
  int fold = 0;
  int trial = 0;
  int seed = 0;
  int64_t step = 0;
  double epoch = 0;
  std::string manifest;  // relative to the state folder
  std::string sha256;
  int64_t bytes = 0;
  double best_metric = 0;
  absl::Time at;
};

// Measurements of a fold's training; 0 while there is none.
struct Measured {
  double step_s = 0;
  double step_p90_s = 0;
  double evaluate_s = 0;
  double predict_s = 0;
  double epoch_s = 0;  // of the last whole epoch, as of all rows; evaluation left out
  int64_t steps_per_epoch = 0;
};

// Seconds of a fold's Attempts, by what they were for; the rest was training.
struct Spent {
  double probe_s = 0;  // from an Attempt's start to its first step
  double validate_s = 0;
  double predict_s = 0;
};

// Not stored: figures of a running fold.
struct Live {
  absl::Time at;
  int64_t step = 0;
  double epoch = 0;
  double loss = 0;
  double learning_rate = 0;
  double steps_per_s = 0;
  double samples_per_s = 0;
  double data_wait = 0;
  std::string precision;
  int batch = 0;
  int64_t steps_per_epoch = 0;
  std::string resolved_settings;  // what the Rank chose, for people
};

struct Task {
  TaskKind kind = TaskKind::kTrain;
  int fold = -1;  // TRAIN: the fold; PREPARE: -1
  // TRAIN: which setting the fold's model has (Spec::trials), and which of the models with it this
  // one is. Extra ones (IsExtra) may go without harm.
  int trial = 0;
  int seed = 0;
  TaskState state = TaskState::kPending;
  int64_t attempt = 0;  // the current one, or the last; the fencing token
  int attempts = 0;
  int failures = 0;  // ended by an error of the Job, which count against retries;
                     // losses of Ranks and Workers do not
  int losses = 0;
  absl::Time not_before = absl::InfinitePast();  // backoff
  int retry_batch = 0;                           // of its next Attempt; 0: as the spec says
  double epochs_planned = 0;
  double epochs_done = 0;
  double row_share = 1;  // the least share of its training rows that an epoch of it had
  std::optional<double> score;
  Boxed<Member> member;          // its predictions, once it has some
  Boxed<Checkpoint> checkpoint;  // the last committed
  std::string message;
  Measured measured;
  Spent spent;
  std::string from_job;  // whose predictions or checkpoint it has taken over
  bool reused = false;   // its predictions are that Job's
  Boxed<Live> live;      // not stored
};

// B6. It ended by itself, before it had all epochs of its Plan.
inline bool RanOutOfPatience(const Task& task) {
  return task.state == TaskState::kDone && task.member && task.member->complete &&
         task.member->epochs_done < task.epochs_planned;
}

struct Attempt {
  int64_t id = 0;
  TaskKind kind = TaskKind::kTrain;
  int fold = -1;
  int trial = 0;
  int seed = 0;
  std::string worker;      // of rank 0, which checkpoints and reports
  std::vector<int> slots;  // of that Worker
  // Where the gang spans Workers: the others, in the order of their ranks.
  std::vector<GangPart> others;
  absl::Time started_at;
  absl::Time ended_at = absl::InfiniteFuture();  // still runs
  AttemptEndReason end_reason = AttemptEndReason::kNone;
  std::string message;
  // TRAIN: the step at which it began, above 0 where it went on from a checkpoint; -1: it has
  // not begun (or is older than this field).
  int64_t first_step = -1;
  facts::Resources resources;  // TRAIN: without a summary, nothing was told
  facts::Transfers transfers;  // 0: no file had to travel
  bool columns_told = false;   // TRAIN: the importance of its columns is among the metrics
};

// All slots of an Attempt, on all of its Workers.
inline int SlotCount(const Attempt& attempt) {
  size_t slots = attempt.slots.size();
  for (const GangPart& part : attempt.others) slots += part.slots.size();
  return static_cast<int>(slots);
}

// The slots that an Attempt has on that Worker; null: none.
inline const std::vector<int>* SlotsOn(const Attempt& attempt, const std::string& worker) {
  if (attempt.worker == worker) return &attempt.slots;
  for (const GangPart& part : attempt.others) {
    if (part.worker == worker) return &part.slots;
  }
  return nullptr;
}

// Facts that PREPARE found.
struct TableInfo {
  std::string table;  // relative to the state folder; empty: not yet
  std::string content_sha256;
  int64_t train_rows = 0;
  int64_t test_rows = 0;
  int features = 0;
  int classes = 0;
};

struct Job {
  std::string id;
  std::string owner = "local";
  std::string request_id;
  // Digest of the spec as it was asked for, before presets and files were looked at; empty: not
  // known. A repeated Submit is recognized by it, whatever has become of its files.
  std::string asked_sha256;
  std::string spec_sha256;  // of spec_json
  Spec spec;
  std::string spec_json;  // resolved
  std::string spec_text;  // as the user wrote it
  JobState state = JobState::kQueued;
  JobEndReason end_reason = JobEndReason::kNone;
  std::string end_message;
  absl::Time accepted_at;
  absl::Duration waited;  // from acceptance to the end of the last Job that it came after
  absl::Time started_at = absl::InfiniteFuture();
  absl::Time deadline = absl::InfiniteFuture();  // InfiniteFuture: none
  absl::Time finished_at = absl::InfiniteFuture();
  bool finish_requested = false;
  bool cancel_requested = false;
  bool quota_reached = false;      // its folds were stopped because nothing is left of one
  bool pinned = false;             // retention does not delete it
  std::vector<std::string> after;  // Jobs that it waits for: nothing starts, no time is used
  TableInfo table;
  std::string floor_model;  // empty: no floor yet
  std::optional<double> floor_score;
  std::optional<PublishedPrediction> prediction;
  double publish_s = 0;  // joining folds' predictions, all times together
  std::vector<std::string> warnings;
  int64_t version = 0;  // grows by 1 with every change

  // [0] is PREPARE, [1 + k] trains fold k, those behind them extra models (IsExtra)
  // as they came into the Plan; or [0] alone is PREDICT or SERVE.
  std::vector<Task> tasks;
  std::vector<Plan> plans;  // by revision; the last counts
  std::vector<Decision> decisions;
  std::vector<Attempt> attempts;

  // Not stored; set by the control core for those who look.
  PendingReason pending_reason = PendingReason::kNone;
  int queue_position = 0;
  std::string waits_for;  // with a pending_reason, for people; may be empty
  absl::Time expected_start =
      absl::InfiniteFuture();  // of its next fold; InfiniteFuture: not known
  absl::Time estimated_finish = absl::InfiniteFuture();
};

// The moment from which the Job's time counts, unless it waits for other Jobs.
inline absl::Time ClockStart(const Job& job) { return job.accepted_at + job.waited; }

// No more is trained: what there is predicts.
inline bool StopsTraining(const Job& job) { return job.finish_requested || job.quota_reached; }
// Whether a Prediction is known to stand.
inline bool HasAnswer(const Job& job) { return job.prediction && job.prediction->number > 0; }

struct Slot {
  int index = 0;
  std::string device;  // cpu or cuda
  std::string name;
  std::string uuid;
  int64_t memory_bytes = 0;
};

// A Prediction that has stood, without its models and files.
struct Answer {
  int number = 0;
  absl::Time at;
  Quality quality = Quality::kNone;
  std::optional<double> oof_score;
  bool comparable = false;
  std::optional<double> test_score;
  int models = 0;  // that answered; 0: the floor alone

  friend bool operator==(const Answer& a, const Answer& b) {
    return a.number == b.number && a.at == b.at && a.quality == b.quality &&
           a.oof_score == b.oof_score && a.comparable == b.comparable &&
           a.test_score == b.test_score && a.models == b.models;
  }
};
inline Answer AnswerOf(const PublishedPrediction& p) {
  return {p.number,
          p.at,
          p.quality,
          p.oof_score,
          p.comparable,
          p.test_score,
          static_cast<int>(p.members.size())};
}

// Names of metrics begin so that tell how much worse a fold's score gets where the column that
// follows is shuffled (facts::Importance).
inline constexpr char kImportanceMetric[] = "importance:";

struct MetricPoint {
  std::string job;
  absl::Time at;
  int fold = 0;
  int64_t attempt = 0;
  int64_t step = 0;
  double epoch = 0;
  std::string name;
  double value = 0;
};

}  // namespace traind
