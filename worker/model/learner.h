// A model with its data, optimizer and device: what one Rank trains. This header
// is the border: what includes it needs no LibTorch.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "worker/data/row_encoder.h"
#include "worker/model/model_spec.h"
#include "worker/model/parameter_layout.h"
#include "worker/model/precision.h"

namespace traind {

class CudaApi;
class Group;

struct LearnerOptions {
  ModelSpec model;
  ModelShape shape;
  bool classification = true;
  double target_mean = 0, target_scale = 1;  // regression: see RowEncoder
  double weight_decay = 0.01;                // of AdamW, decoupled
  Precision precision = Precision::kFp32;
  uint64_t seed = 0;              // of the initial weights
  const CudaApi* cuda = nullptr;  // null: on the CPU
  Group* group = nullptr;         // null: alone
};

// The training file's rows as the network takes them.
struct LearnerData {
  EncodedRows rows;
  std::vector<int32_t> classes;  // [rows], classification; < 0: never trained on
  std::vector<float> values;     // [rows], regression, in the target's own unit
};

struct StepInput {
  int64_t begin = 0;      // in the order
  int64_t rows = 0;       // this rank's; may be 0 in a gang
  int64_t gang_rows = 0;  // of all ranks
  double learning_rate = 0;
  uint64_t dropout_seed = 0;
};

struct LossSum {
  double sum = 0;  // over rows; regression: of squared standardised errors
  double rows = 0;
  double gather_s = 0;  // spent on putting batches together
  double mean() const { return rows > 0 ? sum / rows : 0; }
};

enum class Weights { kLast, kBest };

// Threads: confined to one. Errors: as Guarded() makes them.
class Learner {
 public:
  // Same seed, same weights, on every rank.
  static absl::StatusOr<std::unique_ptr<Learner>> Create(const LearnerOptions& options,
                                                         LearnerData data);
  ~Learner();

  const ParameterLayout& layout() const;
  Precision precision() const;
  // Training goes on in another precision; the weights stay.
  absl::Status SetPrecision(Precision precision);

  // Which rows the steps to come take, by index into the data.
  absl::Status SetOrder(absl::Span<const int32_t> rows);
  // One optimizer step. The gradient is the mean over the gang's rows.
  absl::Status Step(const StepInput& input);
  // Loss of this rank's rows since the last call. Waits for the device.
  absl::StatusOr<LossSum> TakeLoss();
  // Waits for the device.
  absl::Status Synchronize();

  // out: [rows, outputs] float32: probabilities, or values in the target's own
  // unit. Always in float32.
  absl::Status Predict(Weights which, absl::Span<const int32_t> rows, absl::Span<float> out);
  absl::Status Predict(Weights which, const EncodedRows& rows, absl::Span<float> out);

  // The weights now are the best.
  absl::Status KeepBest();

  struct State {
    std::vector<float> weights, best_weights, exp_avg, exp_avg_sq;  // in the layout's order
    int64_t optimizer_steps = 0;                                    // not counting skipped ones
    double loss_scale = 0;                                          // 0: no scaler
    int64_t growth_tracker = 0;
  };
  absl::StatusOr<State> Save();
  // REQUIRES: vectors of TotalSize(layout()).
  absl::Status Load(const State& state);

 private:
  struct Impl;
  explicit Learner(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Threads that operators may use, for this process.
void SetTorchThreads(int threads);

// Loads kernels, allocators and the autograd engine (and a GPU's context, unless
// cuda is null) by training a tiny model.
absl::Status WarmUpTorch(const CudaApi* cuda);

}  // namespace traind
