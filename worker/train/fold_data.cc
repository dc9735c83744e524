#include "worker/train/fold_data.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "common/data/image/image_cache.h"
#include "common/data/table/negative_targets.h"
#include "common/data/table/npy.h"
#include "common/data/table/sample_plan.h"
#include "common/data/volume/volume_set.h"
#include "worker/data/image_source.h"
#include "worker/data/text_source.h"
#include "worker/data/volume_source.h"

namespace traind {
namespace {

// sentencepiece: path of the fold's model.
absl::Status ReadTexts(const plain::TextSpec& spec, const std::string& sentencepiece,
                       FoldData& data) {
  if (spec.tokenizer == "words") {
    data.tokenizer = LearnTokenizer(*data.table, spec, data.rows.training);
  } else {
    ASSIGN_OR_RETURN(const std::string model, ReadFile(sentencepiece));
    ASSIGN_OR_RETURN(data.tokenizer, ParseTokenizer(model));
  }
  data.max_tokens = spec.max_tokens;
  const auto texts = [&](Split split) {
    return TextSource::OfTable(*data.table, split, *data.tokenizer, spec.max_tokens);
  };
  data.media = texts(Split::kTrain);
  data.test_media = texts(Split::kTest);
  return absl::OkStatus();
}

PixelScale ScaleOf(const ImageConfig& seen) {
  constexpr double kWhite = 255;
  PixelScale scale;
  for (size_t i = 0; i < seen.mean.size(); ++i) {
    scale.mean.push_back(static_cast<float>(seen.mean[i] * kWhite));
    scale.inverse_scale.push_back(static_cast<float>(1 / (seen.deviation[i] * kWhite)));
  }
  return scale;
}

// The scale of pixels is that of the fold's training rows, unless a pretrained network has another.
absl::Status AddImages(const std::string& table_path, const TrainingSpec& spec, FoldData& data) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const ImageCache> cache,
                   ImageCache::Open(ImageCacheOf(table_path)));
  const ImageShape& shape = cache->shape();
  if (shape.train_rows != data.table->rows(Split::kTrain) ||
      shape.test_rows != data.table->rows(Split::kTest)) {
    return absl::DataLossError("the cache of images is not of this table");
  }
  const PixelScale scale =
      spec.images_seen.has_value()
          ? ScaleOf(*spec.images_seen)
          : FitPixelScale(cache->pixels(), shape.stride(), shape.channels, data.rows.training);
  if (static_cast<int64_t>(scale.mean.size()) != shape.channels) {
    return absl::DataLossError("the cache of images has other channels than the spec");
  }
  data.image = {shape.channels, shape.size, shape.size};
  const auto images = [&](int64_t first) {
    std::shared_ptr<const uint8_t> pixels(cache, cache->pixels() + first * shape.stride());
    return std::make_shared<ImageSource>(std::move(pixels), shape.size, shape.channels, scale,
                                         spec.augmentation);
  };
  data.media = images(0);
  data.test_media = images(shape.train_rows);
  data.pixel_scale = scale;
  return absl::OkStatus();
}

// The network sees voxels alone.
LearnerData EncodeVolumes(const FoldData& fold) {
  LearnerData data;
  data.rows.rows = fold.table->rows(Split::kTrain) * fold.patches;
  data.rows.media = fold.media;
  // The targets come with the patches.
  data.values.assign(static_cast<size_t>(data.rows.rows * fold.shape().outputs), 0.0f);
  return data;
}

absl::Status OpenVolumes(const std::string& path, const PatchSpec& patches, FoldData& data) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const VolumeSet> set, VolumeSet::Open(path));
  const int64_t rows = data.table->rows(Split::kTrain);
  if (static_cast<int64_t>(set->volumes(Split::kTrain).size()) != rows) {
    return absl::DataLossError(absl::StrCat(path, " is not of its table"));
  }
  if (static_cast<int>(std::max<size_t>(1, set->classes().size())) != patches.classes) {
    return absl::DataLossError(absl::StrCat(path, " has masks of other classes"));
  }
  const Extent3 patch = set->PatchOf(patches.size);
  data.media = std::make_shared<const VolumeSource>(set, Split::kTrain, patch, patches.changes);
  data.test_media = std::make_shared<const VolumeSource>(set, Split::kTest, patch);
  data.patches = patches.per_volume;
  data.outputs = set->row_values();
  std::vector<int32_t> training;
  for (int64_t i = 0; i < data.patches; ++i) {
    for (const int32_t row : data.rows.training) {
      training.push_back(static_cast<int32_t>(row + i * rows));
    }
  }
  data.rows.training = std::move(training);
  return absl::OkStatus();
}

// Measured over public tables (docs/BENCHMARKS.md): plain networks of single rows gain by smooth
// clipping of heavy tails; embeddings of numbers place values by themselves.
OutlierForm HeavyTailsOf(const TrainingSpec& spec, const SampleShape& shape) {
  const bool smooth = spec.model.mlp.has_value() && IsPlain(*spec.model.mlp) && shape.window == 1;
  return smooth ? OutlierForm::kSmooth : OutlierForm::kClamp;
}

}  // namespace

ModelShape FoldData::shape() const {
  ModelShape shape;
  if (const VolumeSource* source = volumes()) {
    const Extent3& patch = source->patch();
    shape.image = {source->set().channels(), patch[0], patch[1], patch[2]};
    shape.outputs = source->set().values();
    return shape;
  }
  shape.numeric = encoder->numeric_width();
  shape.cardinalities = encoder->cardinalities();
  shape.outputs = outputs;
  shape.window = sample.window;
  if (tokenizer != nullptr) {
    shape.vocabulary = VocabularyOf(*tokenizer);
    shape.max_tokens = max_tokens;
  }
  shape.image = image;
  return shape;
}

LearnerData FoldData::Encode() const {
  if (volumes() != nullptr) return EncodeVolumes(*this);
  LearnerData data;
  data.rows = encoder->Encode(Split::kTrain, 0, table->rows(Split::kTrain));
  data.rows.media = media;
  if (table->schema().target_kind == TargetKind::kClasses) {
    const auto classes = table->TargetClass(Split::kTrain);
    data.classes.assign(classes.begin(), classes.end());
  } else {
    data.values = encoder->LearntTargets();
  }
  return data;
}

absl::StatusOr<FoldData> LoadFold(const std::string& state_dir, const std::string& table,
                                  const std::string& job, int fold, const TrainingSpec& spec) {
  FoldData data;
  ASSIGN_OR_RETURN(data.table, Table::Open(absl::StrCat(state_dir, "/", table)));
  const TableSchema& schema = data.table->schema();
  if (spec.classification != (schema.target_kind == TargetKind::kClasses)) {
    return absl::InvalidArgumentError(
        absl::StrCat("task.type does not fit the target column ", schema.target));
  }
  data.outputs = static_cast<int>(spec.classification ? schema.classes.size() : schema.targets());
  ASSIGN_OR_RETURN(const auto folds, ReadNpyInt16(absl::StrCat(state_dir, "/", FoldsPath(job))));
  ASSIGN_OR_RETURN(const SplitSpec split,
                   ReadSamplePlan(absl::StrCat(state_dir, "/", SamplesPath(job))));
  ASSIGN_OR_RETURN(data.rows, SplitFold(*data.table, folds.values, fold, split));
  if (IsOfLogarithm(spec.objective.loss)) {
    RETURN_IF_ERROR(
        CheckNoNegativeTargets(*data.table, LossName(spec.objective.loss), data.rows.training));
  }
  if (spec.transform == TransformKind::kLog) {
    RETURN_IF_ERROR(CheckPositiveTargets(*data.table, data.rows.training));
  }
  data.sample = split.shape;
  // SMAPE is a share of the target's own size, which a difference does not have.
  const TargetForm form =
      spec.objective.loss == LossKind::kSmape ? TargetForm::kValue : TargetForm::kAuto;
  // A user's own network has the widths that it has.
  const InputWidths widths =
      spec.model.script.has_value() ? InputWidths::kTable : InputWidths::kFold;
  data.encoder = std::make_unique<const RowEncoder>(
      RowEncoder::Fit(data.table, data.rows.training, split.shape, form, widths,
                      HeavyTailsOf(spec, split.shape), spec.transform));
  if (!spec.text.columns.empty()) {
    RETURN_IF_ERROR(
        ReadTexts(spec.text, absl::StrCat(state_dir, "/", TokenizerPath(job, fold)), data));
  }
  if (spec.images) RETURN_IF_ERROR(AddImages(absl::StrCat(state_dir, "/", table), spec, data));
  if (spec.patches.has_value()) {
    const std::string volumes = absl::StrCat(state_dir, "/", VolumesOfTable(table));
    RETURN_IF_ERROR(OpenVolumes(volumes, *spec.patches, data));
  }
  return data;
}

}  // namespace traind
