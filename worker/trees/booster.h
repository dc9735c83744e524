// What learns in rounds, in training and trained: boosted trees of both libraries, and kernels
// (kernel_booster.h).
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "worker/trees/tree_rows.h"
#include "worker/trees/tree_spec.h"

namespace traind {

struct BoosterData {
  const TreeColumns* encoder = nullptr;
  TreeMatrix training, validation;
  std::vector<float> targets;  // [training rows]: classes from 0, or values
  std::vector<float> weights;  // [training rows]; empty: all alike
  int classes = 0;             // 0: regression
  double target_scale = 1;     // standard deviation

  int outputs() const { return classes > 0 ? classes : 1; }
};

// Trained trees. Answers are float32 [rows, outputs]: probabilities, or values.
// Threads: confined to one.
class TreeModel {
 public:
  virtual ~TreeModel() = default;
  // Predicts with the first `rounds` rounds. out: [matrix.rows, outputs].
  virtual absl::Status Predict(const TreeMatrix& matrix, int64_t rounds, absl::Span<float> out) = 0;
};

// Trees that grow round by round. Errors: Internal tells what the library says.
// Threads: confined to one, and LightGBM's number of threads is one for the whole process: only
// one Booster trains at a time.
class Booster : public TreeModel {
 public:
  // Returns false if no tree can be split any further: more rounds change nothing.
  virtual absl::StatusOr<bool> TrainRound() = 0;
  virtual int64_t rounds() const = 0;
  // For the validation rows, [rows, outputs]; costs as much as predicting with the trees since
  // the last call.
  virtual absl::Status AnswerValidation(std::vector<float>& out) = 0;
  // The first `rounds` rounds in the library's own format, or a safetensors file; Python reads it.
  virtual absl::StatusOr<std::string> Save(int64_t rounds) = 0;
};

struct BoosterOptions {
  TreeSpec spec;
  int threads = 1;
  uint64_t seed = 0;
  std::string resume;  // of Save(); empty: from the beginning
  int64_t resume_rounds = 0;
};

// Whether a booster that goes on from Save() ends with the very trees of one that was not
// interrupted; else they are as good, but drawn otherwise.
enum class Continuation { kExact, kOtherDraws, kNone };
Continuation ContinuationOf(const TreeSpec& spec);

// Errors: InvalidArgument: the library refuses the parameters or the data; those of opening the
// library.
absl::StatusOr<std::unique_ptr<Booster>> NewBooster(const BoosterOptions& options,
                                                    BoosterData data);
// bytes: of Booster::Save(). Errors: DataLoss; those of opening the library.
absl::StatusOr<std::unique_ptr<TreeModel>> LoadTrees(absl::string_view kind,
                                                     const std::string& bytes, int outputs,
                                                     int threads);
}  // namespace traind
