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
  if (RowEncoder(file->encoder).shape().history() > 0) {
    return absl::FailedPreconditionError(
        "the models forecast: they predict the rows that follow their training rows, and a later "
        "file does not contain those");
  }
  if (HasTrees(state_dir, dir)) {
    return BoostedModel::Load(state_dir, dir, *std::move(file), threads);
  }
  return NetworkModel::Load(state_dir, dir, *std::move(file));
}

}  // namespace traind
