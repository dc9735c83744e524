#include "worker/inference/trained_model.h"

#include <absl/strings/str_cat.h>

#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "worker/inference/boosted_model.h"
#include "worker/inference/network_model.h"

namespace traind {

absl::StatusOr<std::unique_ptr<TrainedModel>> TrainedModel::Load(const std::string& state_dir,
                                                                 const std::string& dir,
                                                                 int threads) {
  absl::StatusOr<ModelFile> file = ReadModelFile(state_dir, dir);
  if (absl::IsNotFound(file.status())) {
    return absl::FailedPreconditionError(
        absl::StrCat(dir, " has no ", kModelFile, ": an older engine trained it"));
  }
  RETURN_IF_ERROR(file.status());
  if (file->encoder.shape.history() > 0 && !file->series.has_value()) {
    return absl::FailedPreconditionError(
        file->encoder.shape.horizon > 0
            ? "an older engine trained this forecast: its models know no later rows"
            : "models of windows without a horizon predict no later rows");
  }
  if (HasTrees(state_dir, dir)) {
    return BoostedModel::Load(state_dir, dir, *std::move(file), threads);
  }
  return NetworkModel::Load(state_dir, dir, *std::move(file));
}

}  // namespace traind
