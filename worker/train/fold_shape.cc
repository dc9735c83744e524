#include "worker/train/fold_shape.h"

#include <absl/strings/str_cat.h>

#include <memory>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "common/data/image/image_cache.h"
#include "common/data/table/npy.h"
#include "common/data/table/sample_plan.h"
#include "common/data/text/tokenizer.h"
#include "common/data/volume/volume_set.h"
#include "worker/data/fold_rows.h"
#include "worker/data/row_encoder.h"
#include "worker/data/text_source.h"

namespace traind {
namespace {

// Columns, steps and outputs.
absl::Status AddColumns(const std::string& state_dir, const std::shared_ptr<const Table>& table,
                        const std::string& job, int fold, const TrainingSpec& spec,
                        ModelShape& shape) {
  ASSIGN_OR_RETURN(const auto folds, ReadNpyInt16(absl::StrCat(state_dir, "/", FoldsPath(job))));
  ASSIGN_OR_RETURN(const SplitSpec split,
                   ReadSamplePlan(absl::StrCat(state_dir, "/", SamplesPath(job))));
  ASSIGN_OR_RETURN(const FoldRows rows, SplitFold(*table, folds.values, fold, split));
  const RowEncoder encoder =
      RowEncoder::Fit(table, rows.training, split.shape, TargetForm::kAuto, InputWidths::kFold);
  shape.numeric = encoder.numeric_width();
  shape.cardinalities = encoder.cardinalities();
  shape.window = split.shape.window;
  const TableSchema& schema = table->schema();
  shape.outputs =
      static_cast<int64_t>(spec.classification ? schema.classes.size() : schema.targets());
  return absl::OkStatus();
}

absl::Status AddTexts(const std::string& tokenizer, const TrainingSpec& spec, FoldShape& fold) {
  fold.shape.max_tokens = spec.text.max_tokens;
  if (!spec.pretrained.has_value() || !spec.pretrained->tokens_given) {
    fold.shape.vocabulary = spec.text.vocabulary + 1;
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(tokenizer));
  ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> given, ParseTokenizer(bytes));
  fold.shape.vocabulary = VocabularyOf(*given);
  fold.pieces = given->size();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FoldShape> ShapeOfFold(const std::string& state_dir, const std::string& table,
                                      const std::string& job, int fold, const TrainingSpec& spec) {
  const auto in_state = [&](const std::string& path) { return absl::StrCat(state_dir, "/", path); };
  FoldShape result;
  if (spec.patches.has_value()) {
    ASSIGN_OR_RETURN(const auto volumes, VolumeSet::Open(in_state(VolumesOfTable(table))));
    const Extent3 patch = volumes->PatchOf(spec.patches->size);
    result.shape.image = {volumes->channels(), patch[0], patch[1], patch[2]};
    return result;
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<const Table> rows, Table::Open(in_state(table)));
  RETURN_IF_ERROR(AddColumns(state_dir, rows, job, fold, spec, result.shape));
  if (!spec.text.columns.empty()) {
    RETURN_IF_ERROR(AddTexts(in_state(TokenizerPath(job, fold)), spec, result));
  }
  if (spec.images) {
    ASSIGN_OR_RETURN(const auto images, ImageCache::Open(in_state(ImageCacheOf(table))));
    result.shape.image = {images->shape().channels, images->shape().size, images->shape().size};
  }
  return result;
}

}  // namespace traind
