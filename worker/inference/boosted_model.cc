#include "worker/inference/boosted_model.h"

#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "worker/trees/lag_encoder.h"

namespace traind {

absl::StatusOr<std::unique_ptr<TrainedModel>> BoostedModel::Load(const std::string& state_dir,
                                                                 const std::string& dir,
                                                                 ModelFile file, int threads) {
  std::unique_ptr<BoostedModel> model(new BoostedModel(std::move(file)));
  TreeCheckpoint expected;
  expected.table_sha256 = model->file_.table_sha256;
  expected.fold = model->file_.fold;
  expected.seed = model->file_.seed;
  std::vector<std::string> passed_over;
  ASSIGN_OR_RETURN(const TreeCheckpoint found, NewestTrees(state_dir, dir, expected, passed_over));
  ASSIGN_OR_RETURN(
      model->trees_,
      LoadTrees(found.kind, found.trees, static_cast<int>(model->file_.input.outputs()), threads));
  model->best_rounds_ = found.has_best ? found.best_rounds : found.rounds;
  model->smearing_ = found.best_smearing;
  model->attempt_ = found.attempt;
  model->epoch_ = found.has_best ? found.best_epoch : found.epoch;
  model->step_ = found.rounds;
  return model;
}

absl::Status BoostedModel::Predict(const LaterRows& rows, int64_t begin, int64_t end,
                                   absl::Span<float> out) {
  RETURN_IF_ERROR(trees_->Predict(tree_encoder_.Encode(rows, begin, end), best_rounds_, out));
  ToOwnUnit(file_.encoder.transforms, smearing_, out);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<float>> BoostedModel::Forecast(std::shared_ptr<const Table> later) {
  if (!file_.lags.has_value()) {
    return absl::FailedPreconditionError("an older engine trained these trees");
  }
  std::vector<float> out(static_cast<size_t>(later->rows(Split::kTest)));
  LagEncoder lags(std::move(later), tree_encoder_, file_.encoder.shape, file_.series->time,
                  *file_.lags);
  RETURN_IF_ERROR(lags.PredictTest(
      [this](const TreeMatrix& rows, absl::Span<float> learnt) {
        return trees_->Predict(rows, best_rounds_, learnt);
      },
      absl::MakeSpan(out)));
  return out;
}

}  // namespace traind
