// Facts about an Attempt, each told once: a Rank writes them as JSON lines, the Worker passes
// them on as Protobuf messages (proto/worker_service.proto, the same names), and the control
// core decides by them. A new field is a line here, its name in facts.cc, and a line in the
// proto file; the build or tests/common/wire fail where one of them lacks.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/facts/field.h"
#include "common/facts/reasons.h"

namespace traind::facts {

// The cache, the folds and the prior floor are on disk.
struct TableReady {
  static constexpr char kType[] = "table_ready";
  std::string table;  // relative to state_dir
  std::string content_sha256 = {};
  int64_t train_rows = 0;
  int64_t test_rows = 0;
  int features = 0;
  int classes = 0;  // 0: regression
  int64_t read_ms = 0;
  bool cached = false;  // the cache had it
  std::vector<std::string> warnings = {};
  std::vector<Field> Fields();
};

// floor/oof.npy and floor/test.npy hold a first or a better floor.
struct FloorReady {
  static constexpr char kType[] = "floor_ready";
  std::string model;  // prior, mean, logistic, ridge
  double score = 0;   // the Job's metric, out of fold over all rows
  std::string oof_sha256 = {};
  std::string test_sha256 = {};  // empty without test rows
  std::vector<Field> Fields();
};

struct Started {
  static constexpr char kType[] = "started";
  int64_t parameters = 0;
  std::string precision = {};          // in use: fp32, tf32, bf16, fp16
  int batch = 0;                       // per rank, in use
  int64_t steps_per_epoch = 0;         // optimizer steps
  int64_t first_step = 0;              // above 0 after a resume
  int start_epoch = 0;                 // epochs that the checkpoint has behind it
  std::string resolved_settings = {};  // all that was chosen, for people: "precision=fp32 ..."
  std::vector<Field> Fields();
};

// Measured on real steps of this task.
struct Probe {
  static constexpr char kType[] = "probe";
  double step_s = 0;  // median optimizer step, data wait included
  double step_p90_s = 0;
  int64_t timed_steps = 0;
  double evaluate_s = 0;  // one validation pass
  double predict_s = 0;   // estimate: validation and test rows, writing included
  std::vector<Field> Fields();
};

// At most 10 a second; may get lost.
struct Progress {
  static constexpr char kType[] = "progress";
  int64_t step = 0;
  double epoch = 0;  // fractional epochs done
  double loss = 0;   // mean since the last Progress
  double lr = 0;     // learning rate
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
  // The Worker adds these, over all processes of the task on its machine. Below 0: not known.
  double cpu_cores = -1;            // cores that they kept busy
  double resident_bytes = -1;       // their memory now
  double steal = -1;                // share of the machine's time that its host gave to others, 0-1
  double device_utilisation = -1;   // of the GPUs of the task, the mean, 0-1
  double device_memory_bytes = -1;  // of the GPUs of the task, the sum
  double power_watts = -1;          // the sum
  double temperature_celsius = -1;  // of the hottest
  std::vector<Field> Fields();
};

// The resources that a TRAIN Attempt used, measured by the Worker of rank 0: told when training
// has started, then with `summary` alone, and before Ended.
struct Resources {
  static constexpr char kType[] = "resources";
  std::string summary = {};  // its devices, the driver, and what the task chose, for people
  double seconds = 0;        // of training, that were measured
  double epochs = 0;         // in these
  double utilisation = -1;   // mean share of the time in which the devices computed; -1: not known
  std::string advice = {};   // what kept the devices waiting; empty: they did not wait
  double cpu_s = 0;
  double energy_joules = -1;      // of the GPUs; -1: not known
  int64_t peak_memory_bytes = 0;  // resident, of all processes; 0: not known
  int64_t peak_device_bytes = 0;  // in use on the GPUs by all processes; 0: not known
  std::vector<Field> Fields();
};

// The files of an Attempt that travelled between traind's state folder and that of its Worker,
// which tells it: when the task may start, and with each further file. The sums of the Attempt so
// far.
struct Transfers {
  static constexpr char kType[] = "transfers";
  int64_t fetched_bytes = 0;  // what was there already is not in it
  double fetch_s = 0;         // until the task could start
  int64_t sent_bytes = 0;
  double send_s = 0;  // the task may have gone on meanwhile
  std::vector<Field> Fields();
};

// A pass over the training rows, or over its share of them, is done.
struct Epoch {
  static constexpr char kType[] = "epoch";
  int epoch = 0;  // epochs done, from 1
  int64_t step = 0;
  double train_loss = 0;
  double val_loss = 0;
  double val_metric = 0;  // the Job's metric on the fold's validation rows
  double best_metric = 0;
  double epoch_s = 0;
  double evaluate_s = 0;
  double row_share = 1;  // of the training rows, that this epoch had
  // The body of the network was fixed, and later epochs train it, too: they take longer.
  bool head_only = false;
  std::vector<Field> Fields();
};

// The checkpoint is durable.
struct CheckpointSaved {
  static constexpr char kType[] = "checkpoint_saved";
  int64_t step = 0;
  double epoch = 0;
  std::string manifest = {};  // relative to state_dir
  std::string sha256 = {};    // of the safetensors file
  int64_t bytes = 0;
  double best_metric = 0;
  int64_t save_ms = 0;
  std::vector<Field> Fields();
};

// The fold's predictions are durable below the Job's folder. complete = false while the fold
// still trains: its best weights so far.
struct FoldSaved {
  static constexpr char kType[] = "fold_saved";
  int fold = 0;
  bool complete = false;                    // planned epochs reached, or patience ran out
  bool last = false;                        // no other will come from this task
  StopCause stopped_by = StopCause::kNone;  // of the last one
  double epochs_done = 0;
  double score = 0;      // the Job's metric on the fold's validation rows
  std::string oof = {};  // path relative to the Job's folder
  std::string oof_sha256 = {};
  std::string test = {};  // empty without test rows
  std::string test_sha256 = {};
  double predict_s = 0;
  // When the weights that predicted were made: epochs, and optimizer steps of the task, done.
  double best_epoch = 0;
  int64_t step = 0;
  int trial = 0;  // which of the Job's trials
  int seed = 0;   // which of the fold's models with it
  std::vector<Field> Fields();
};

// How much worse the fold's validation rows score where one column's values are shuffled among them
// (permutation importance). Told before the last FoldSaved, where there was time for it.
struct Importance {
  static constexpr char kType[] = "importance";
  std::vector<std::string> columns = {};
  std::vector<double> drops = {};  // of each column, in the Job's metric; above 0: it is used
  std::vector<Field> Fields();
};

// The last fact of an Attempt.
struct Ended {
  static constexpr char kType[] = "ended";
  AttemptEndReason reason = AttemptEndReason::kNone;
  std::string message = {};  // for the user: what, and where
  std::vector<Field> Fields();
};

// A task changed something of itself, such as its precision.
struct Decision {
  static constexpr char kType[] = "decision";
  DecisionRule rule = DecisionRule::kOther;
  std::string cause, from, to;
  std::vector<Field> Fields();
};

using Fact = std::variant<TableReady, FloorReady, Started, Probe, Progress, Epoch, CheckpointSaved,
                          FoldSaved, Ended, Decision, Resources, Importance, Transfers>;

// The figures of a Progress that are known and become metrics of the Job by these names
// (docs/FORMATS.md, "Metrics"), besides loss, learning rate and samples per second.
std::vector<std::pair<const char*, double>> Signals(const Progress& progress);

}  // namespace traind::facts
