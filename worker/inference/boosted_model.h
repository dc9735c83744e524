// Trained trees.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "worker/inference/trained_model.h"
#include "worker/trees/booster.h"
#include "worker/trees/tree_checkpoint.h"
#include "worker/trees/tree_rows.h"

namespace traind {

// Its library is opened at run time; LibTorch has no part in it.
// Threads: confined to one. Errors: those of its TreeModel.
class BoostedModel final : public TrainedModel {
 public:
  // file: of the folder. Errors: as TrainedModel::Load; USER_ERROR: the library is missing.
  static absl::StatusOr<std::unique_ptr<TrainedModel>> Load(const std::string& state_dir,
                                                            const std::string& dir, ModelFile file,
                                                            int threads);

  absl::Status Predict(const LaterRows& rows, int64_t begin, int64_t end,
                       absl::Span<float> out) override;
  absl::StatusOr<std::vector<float>> Forecast(std::shared_ptr<const Table> later) override;

 private:
  explicit BoostedModel(ModelFile file)
      : TrainedModel(std::move(file)), tree_encoder_(file_.encoder, file_.input.features) {}

  const TreeEncoder tree_encoder_;
  std::unique_ptr<TreeModel> trees_;
  int64_t best_rounds_ = 0;
  Smearing smearing_;
};

}  // namespace traind
