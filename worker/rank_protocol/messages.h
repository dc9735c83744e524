// What a Worker and the process that works for it say to each other: one JSON
// object per line, both ways, over the process's standard input and output (a
// socketpair under the Worker, a terminal when run by hand). "type" names the
// message. Unknown keys are ignored, so that either side may be the newer one.
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
//                    < FoldSaved (last one)   < Finished   < Ready
// Order, a PREDICT:  < Ready   > Predict   < TableReady   < Progress*   < Predicted (1 or more)
//                    < Finished   < Ready
// Order, a SERVE:    < Ready   > Serve   < Serving   (> Rows   < Answered)*   < Finished   < Ready
// Failed may replace whatever would come next, up to Finished; it ends the task.
// Decision and LogText may come at any time.
//
// Times are remaining durations in ms, from the moment the message is read.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace traind::rank_protocol {

// ---- to the process ---------------------------------------------------------

struct Prepare {  // "prepare"
  int64_t attempt = 0;
  std::string job;
  std::string state_dir;      // absolute
  std::string spec_json;      // resolved JobSpec (proto/job.proto) as JSON text, snake_case keys
  int64_t remaining_ms = -1;  // to the Job's deadline; -1: none
};

struct Rendezvous {
  std::string host = "127.0.0.1";
  int port = 0;
  int64_t timeout_ms = 30'000;  // of each collective
};

struct Train {  // "train"
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
  int epochs = 0;         // the Plan's, not the spec's
  double rows = 1;        // share of the training rows that an epoch sees
  int batch = 0;          // per rank; 0: the Rank chooses and says so in Started
  std::string precision;  // fp32, tf32, bf16, fp16; empty: as the spec says, or the Rank chooses
  std::string resume;     // manifest path of the checkpoint to go on from, relative; empty: none
  int64_t stop_ms = -1;   // stop training then and predict; -1: never
  int64_t remaining_ms = -1;  // the Prediction must stand then; -1: no deadline
  int64_t checkpoint_every_ms = 60'000;
  int seed = 0;  // which of the fold's models
};

// "predict": read a file and predict it with another Job's models.
struct Predict {
  int64_t attempt = 0;
  std::string job;
  std::string state_dir;  // absolute
  std::string spec_json;  // resolved, its `predict` with the models
  int threads = 1;
  int64_t remaining_ms = -1;  // to the Job's deadline; -1: none
};

// "serve": load another Job's models and answer Rows until none come for as long as the spec says.
struct Serve {
  int64_t attempt = 0;
  std::string job;
  std::string state_dir;
  std::string spec_json;  // resolved, its `serve` with the models
  int threads = 1;
  int64_t remaining_ms = -1;
};

struct Rows {  // "rows": for a serving task
  int64_t attempt = 0;
  uint64_t request = 0;
  std::vector<std::string> columns;
  std::vector<std::string> values;  // row by row, columns.size() each
};

struct Replan {  // "replan": a new Plan for the running task
  int64_t attempt = 0;
  int epochs = 0;             // 0: as before
  int64_t stop_ms = -1;       // -1: as before
  int64_t remaining_ms = -1;  // -1: as before
  double rows = 0;            // 0: as before
};

// "stop": soft = at the next step boundary save a checkpoint, predict with the
// best weights (FoldSaved, Finished). Not soft = drop the task at once
// (checkpoint only, then Finished) - as for Cancel, Pause or preemption.
struct Stop {
  int64_t attempt = 0;
  bool predict = true;
};

struct Exit {};  // "exit"

// ---- from the process -------------------------------------------------------

struct Ready {  // "ready"
  int64_t pid = 0;
  std::string engine;  // engine version, part of cache keys
  std::string device;  // human: "cpu" or the GPU's name
};

struct TableReady {  // "table_ready": cache, folds and the prior floor are on disk
  int64_t attempt = 0;
  std::string table;  // relative to state_dir
  std::string content_sha256;
  int64_t train_rows = 0;
  int64_t test_rows = 0;
  int features = 0;
  int classes = 0;  // 0: regression
  int64_t read_ms = 0;
  bool cached = false;  // the cache had it
  std::vector<std::string> warnings;
};

// "floor_ready": floor/oof.npy and floor/test.npy hold a (better) floor.
struct FloorReady {
  int64_t attempt = 0;
  std::string model;                    // prior, mean, logistic, ridge
  double score = 0;                     // the Job's metric, out of fold over all rows
  std::string oof_sha256, test_sha256;  // test: empty without test rows
};

struct Started {  // "started"
  int64_t attempt = 0;
  int64_t parameters = 0;
  std::string precision;          // in use: fp32, tf32, bf16, fp16
  int batch = 0;                  // per rank, in use
  int64_t steps_per_epoch = 0;    // optimizer steps
  int64_t first_step = 0;         // > 0 after a resume
  int start_epoch = 0;            // epochs already behind the checkpoint
  std::string resolved_settings;  // all that was chosen, for people: "precision=fp32 ..."
};

struct Probe {  // "probe": measured on real steps of this task
  int64_t attempt = 0;
  double step_s = 0;  // median optimizer step, data wait included
  double step_p90_s = 0;
  int64_t timed_steps = 0;
  double evaluate_s = 0;  // one validation pass
  double predict_s = 0;   // estimate: validation and test rows, writing included
};

struct Progress {  // "progress": at most 10 a second
  int64_t attempt = 0;
  int64_t step = 0;
  double epoch = 0;  // fractional epochs done
  double loss = 0;   // mean since the last Progress
  double lr = 0;
  double steps_per_s = 0;
  double samples_per_s = 0;
  // Shares of the time since the last Progress, 0-1: putting batches together; with other
  // ranks; validating and saving. The rest is computing.
  double data_wait = 0;
  double exchange = 0;
  double pause = 0;
  double utilisation = -1;        // share of the time in which the device computed; -1: not known
  double gradient_norm = 0;       // of the last step, before clipping; 0: not measured
  double loss_scale = 0;          // 0: no scaler
  int64_t peak_memory_bytes = 0;  // of the task: resident at once; 0: not known
  int64_t peak_device_bytes = 0;  // of tensors on a GPU at once; 0: no GPU
};

struct Epoch {  // "epoch": a pass over the training rows, or its share of them, is done
  int64_t attempt = 0;
  int epoch = 0;  // epochs done, from 1
  int64_t step = 0;
  double train_loss = 0;
  double val_loss = 0;
  double val_metric = 0;  // the Job's metric on the fold's validation rows
  double best_metric = 0;
  double epoch_s = 0;
  double evaluate_s = 0;
  double rows = 1;  // share of the training rows that it had
};

struct CheckpointSaved {  // "checkpoint_saved": durable
  int64_t attempt = 0;
  int64_t step = 0;
  double epoch = 0;
  std::string manifest;  // relative to state_dir
  std::string sha256;    // of the safetensors file
  int64_t bytes = 0;
  double best_metric = 0;
  int64_t save_ms = 0;
};

// "fold_saved": the fold's predictions are durable under the Attempt's folder.
// complete = false while the fold still trains: its best weights so far.
struct FoldSaved {
  int64_t attempt = 0;
  int fold = 0;
  bool complete = false;   // planned epochs reached, or patience ran out
  bool last = false;       // no other will come from this task
  std::string stopped_by;  // epochs, patience, time, user (when last)
  double epochs_done = 0;
  double score = 0;               // the Job's metric on the fold's validation rows
  std::string oof, oof_sha256;    // path relative to the job's folder
  std::string test, test_sha256;  // empty without test rows
  double predict_s = 0;
  // When the weights that predicted were made: epochs, and optimizer steps of the task, done.
  double best_epoch = 0;
  int64_t step = 0;
  int seed = 0;  // which of the fold's models
};

// "predicted": a Prediction of so many members stands in the Job's folder.
struct Predicted {
  int64_t attempt = 0;
  int number = 0;
  int members = 0;
};

struct Serving {  // "serving": models are loaded
  int64_t attempt = 0;
  int members = 0;
};

struct Answered {  // "answered": to Rows
  int64_t attempt = 0;
  uint64_t request = 0;
  std::string code;     // a canonical status code's number in text; empty: ok
  std::string message;  // what is wrong with which row and column
  std::vector<std::string> targets, classes;
  std::vector<std::string> values;    // row by row, one for each target
  std::vector<double> probabilities;  // row by row, one for each class
  std::string members;                // JSON: fold, attempt, complete, score, epoch, step, weight
  std::string quality;
};

struct Finished {  // "finished"
  int64_t attempt = 0;
};

struct Failed {  // "failed"
  int64_t attempt = 0;
  std::string reason;   // an AttemptEndReason without its prefix: DATA_ERROR, USER_ERROR,
                        // DIVERGED, OUT_OF_MEMORY, STORAGE_FULL, COLLECTIVE_TIMEOUT, INTERNAL
  std::string message;  // for the user: what, and where
};

struct Decision {  // "decision": such as a change of precision
  int64_t attempt = 0;
  std::string rule, cause, from, to;
};

struct LogText {      // "log"
  std::string level;  // info, warning, error
  std::string text;
};

using ToProcess = std::variant<Prepare, Train, Predict, Serve, Rows, Replan, Stop, Exit>;
using FromProcess =
    std::variant<Ready, TableReady, FloorReady, Started, Probe, Progress, Epoch, CheckpointSaved,
                 FoldSaved, Predicted, Serving, Answered, Finished, Failed, Decision, LogText>;

// One line, without its newline.
std::string Encode(const ToProcess& message);
std::string Encode(const FromProcess& message);
// InvalidArgument names the key.
absl::StatusOr<ToProcess> DecodeToProcess(absl::string_view line);
absl::StatusOr<FromProcess> DecodeFromProcess(absl::string_view line);

// Longer lines are an error of the sender.
inline constexpr size_t kMaxLineBytes = 4 << 20;

}  // namespace traind::rank_protocol
