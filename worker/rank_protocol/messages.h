// The messages between a Worker and the process that works for it: one JSON
// object per line, both ways, over the process's standard input and output (a
// socketpair under the Worker, a terminal when run by hand). The key "type" holds a message's
// kType, the other keys are its fields' names. Unknown keys are ignored, so that either side may
// be the newer one. Enums are their names (common/facts/reasons.h).
// Non-finite numbers are the strings "NaN", "Infinity", "-Infinity".
//
// Two programs speak it:
//   trainprep (no torch) takes PREPARE; one task, then it exits 0.
//   trainrank (LibTorch) takes TRAIN, PREDICT and SERVE; after a task it says Ready
//   again, so an idle one is a warm spare. End of input = abort and exit: a Rank never
//   outlives its Worker (besides, it dies with its parent by PDEATHSIG).
//
// Order, a PREPARE:  > Prepare   < TableReady   < FloorReady (1 or 2 times)   < Finished
// Order, a TRAIN:    < Ready   > Train   < Started   < Probe   < Progress*  < Epoch*
//                    < CheckpointSaved*   < FoldSaved* (from a running fold, see there)
//                    < Importance (where time allows)   < FoldSaved (last one)
//                    < Finished   < Ready
// Order, a PREDICT:  < Ready   > Predict   < TableReady   < Progress*   < Predicted (1 or more)
//                    < Finished   < Ready
// Order, a SERVE:    < Ready   > Serve   < Serving   (> Rows   < Answered)*   < Finished   < Ready
// Failed may replace whatever would come next, up to Finished; it ends the task.
// Decision and LogText may come at any time.
//
// Times are remaining durations in ms, from the moment the message is read.
// Threads: the functions are safe to call from any thread.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/facts/facts.h"
#include "worker/rank_protocol/json_line.h"

namespace traind::rank_protocol {

// ---- to the process ---------------------------------------------------------

struct Prepare {
  static constexpr char kType[] = "prepare";
  int64_t attempt = 0;
  std::string job;
  std::string state_dir;      // absolute
  std::string spec_json;      // resolved JobSpec (proto/job.proto) as JSON text, snake_case keys
  int64_t remaining_ms = -1;  // to the Job's deadline; -1: none
  std::vector<std::string>
      data_roots;  // below them or at its path lies what the spec names; none: anywhere
  std::vector<Field> Fields();
};

struct Rendezvous {
  std::string host = "127.0.0.1";
  int port = 0;
  int64_t timeout_ms = 30'000;  // of each collective
  std::vector<Field> Fields();
};

struct Train {
  static constexpr char kType[] = "train";
  int64_t attempt = 0;
  std::string job;
  std::string state_dir;  // absolute; the Attempt's files go to AttemptDir() in it
  std::string spec_json;
  std::string table;  // relative to state_dir
  int fold = 0;
  int rank = 0;
  int world_size = 1;
  Rendezvous rendezvous;       // used where world_size > 1
  std::string device = "cpu";  // "cpu", or "cuda" (the one device that CUDA_VISIBLE_DEVICES leaves)
  int threads = 1;
  int loader_threads = 0;  // that load media; 0: as many as the training turns out to need
  int epochs = 0;          // the Plan's, not the spec's
  double row_share = 1;    // of the training rows, that an epoch sees
  int batch = 0;           // per rank; 0: the Rank chooses and says so in Started
  std::string precision;   // fp32, tf32, bf16, fp16; empty: as the spec says, or the Rank chooses
  std::string resume;      // manifest path of the checkpoint to go on from, relative; empty: none
  int64_t stop_ms = -1;    // stop training then and predict; -1: never
  int64_t remaining_ms = -1;  // the Prediction must stand then; -1: no deadline
  int64_t checkpoint_every_ms = 60'000;
  int trial = 0;  // which of the spec's trials
  int seed = 0;   // which of the fold's models with it
  bool files_travel = false;  // state_dir is not traind's: other Workers see nothing in it
  std::vector<Field> Fields();
};

// Read a file and predict it with another Job's models.
struct Predict {
  static constexpr char kType[] = "predict";
  int64_t attempt = 0;
  std::string job;
  std::string state_dir;  // absolute
  std::string spec_json;  // resolved, its `predict` with the models
  int threads = 1;
  int64_t remaining_ms = -1;            // to the Job's deadline; -1: none
  std::vector<std::string> data_roots;  // as in Prepare
  std::vector<Field> Fields();
};

// Load another Job's models and answer Rows, until none come for as long as the spec says.
struct Serve {
  static constexpr char kType[] = "serve";
  int64_t attempt = 0;
  std::string job;
  std::string state_dir;
  std::string spec_json;  // resolved, its `serve` with the models
  int threads = 1;
  int64_t remaining_ms = -1;
  std::vector<Field> Fields();
};

// Rows to predict, for a serving task.
struct Rows {
  static constexpr char kType[] = "rows";
  int64_t attempt = 0;
  uint64_t request = 0;
  std::vector<std::string> columns;
  std::vector<std::string> values;  // row by row, columns.size() each
  std::vector<Field> Fields();
};

// A new Plan for the running task.
struct Replan {
  static constexpr char kType[] = "replan";
  int64_t attempt = 0;
  int epochs = 0;             // 0: as before
  int64_t stop_ms = -1;       // -1: as before
  int64_t remaining_ms = -1;  // -1: as before
  double row_share = 0;       // 0: as before
  std::vector<Field> Fields();
};

// Stop at the next step boundary and save a checkpoint. With `predict`, the Rank then predicts
// with the best weights (FoldSaved, Finished); without it, as for Cancel and Pause, only
// Finished follows.
struct Stop {
  static constexpr char kType[] = "stop";
  int64_t attempt = 0;
  bool predict = true;
  StopReason reason = StopReason::kNone;  // FoldSaved tells the cause that follows from it
  std::vector<Field> Fields();
};

// End the process, after the task's last durable file if one runs.
struct Exit {
  static constexpr char kType[] = "exit";
  std::vector<Field> Fields();
};

// ---- from the process -------------------------------------------------------

struct Ready {
  static constexpr char kType[] = "ready";
  int64_t pid = 0;
  std::string engine;  // engine version, part of cache keys
  std::string device;  // human: "cpu" or the GPU's name
  std::vector<Field> Fields();
};

// A fact as a Rank tells it: with the Attempt that it is about.
template <class F>
struct OfAttempt : F {
  int64_t attempt = 0;
  std::vector<Field> Fields() {
    std::vector<Field> fields = F::Fields();
    fields.push_back({"attempt", &attempt});
    return fields;
  }
};
using TableReady = OfAttempt<facts::TableReady>;
using FloorReady = OfAttempt<facts::FloorReady>;
using Started = OfAttempt<facts::Started>;
using Probe = OfAttempt<facts::Probe>;
using Progress = OfAttempt<facts::Progress>;
using Epoch = OfAttempt<facts::Epoch>;
using CheckpointSaved = OfAttempt<facts::CheckpointSaved>;
using FoldSaved = OfAttempt<facts::FoldSaved>;
using Importance = OfAttempt<facts::Importance>;
using Decision = OfAttempt<facts::Decision>;

// A Prediction of so many members stands in the Job's folder.
struct Predicted {
  static constexpr char kType[] = "predicted";
  int64_t attempt = 0;
  int number = 0;
  int members = 0;
  std::vector<Field> Fields();
};

// The models are loaded.
struct Serving {
  static constexpr char kType[] = "serving";
  int64_t attempt = 0;
  int members = 0;
  std::vector<Field> Fields();
};

// The answer to Rows.
struct Answered {
  static constexpr char kType[] = "answered";
  int64_t attempt = 0;
  uint64_t request = 0;
  std::string code;     // a canonical status code's number in text; empty: ok
  std::string message;  // what is wrong with which row and column
  std::vector<std::string> targets, classes;
  std::vector<std::string> values;            // row by row, one for each target
  std::vector<double> probabilities;          // row by row, one for each class
  std::vector<std::string> quantile_columns;  // where the answer has quantiles
  std::vector<double> quantiles;              // row by row, one for each of these columns
  std::string members;  // JSON: fold, attempt, complete, score, epoch, step, weight
  std::string quality;
  bool more = false;  // rows are left, which the next message for the request brings
  std::vector<Field> Fields();
};

struct Finished {
  static constexpr char kType[] = "finished";
  int64_t attempt = 0;
  std::vector<Field> Fields();
};

// The task failed; reasons are USER_ERROR, DATA_ERROR, DIVERGED and the like.
struct Failed {
  static constexpr char kType[] = "failed";
  int64_t attempt = 0;
  AttemptEndReason reason = AttemptEndReason::kInternal;
  std::string message;  // for the user: what, and where
  std::vector<Field> Fields();
};

struct LogText {
  static constexpr char kType[] = "log";
  std::string level;  // info, warning, error
  std::string text;
  std::vector<Field> Fields();
};

using ToProcess = std::variant<Prepare, Train, Predict, Serve, Rows, Replan, Stop, Exit>;
using FromProcess = std::variant<Ready, TableReady, FloorReady, Started, Probe, Progress, Epoch,
                                 CheckpointSaved, FoldSaved, Predicted, Serving, Answered, Finished,
                                 Failed, Decision, LogText, Importance>;

// One line, without its newline.
std::string Encode(const ToProcess& message);
std::string Encode(const FromProcess& message);
// InvalidArgument names the key.
absl::StatusOr<ToProcess> DecodeToProcess(absl::string_view line);
absl::StatusOr<FromProcess> DecodeFromProcess(absl::string_view line);

}  // namespace traind::rank_protocol
