#include "server/intake/epoch_work.h"

#include <algorithm>
#include <cmath>

#include "common/data/weights/image_architectures.h"
#include "common/job_rules/task_rules.h"

namespace traind {
namespace {

// Bytes of CSV, separators included, of a number or a category, and of a token of a text.
constexpr double kBytesPerValue = 6, kBytesPerToken = 5;
constexpr double kMasksPerVolume = 1;
// A tree reads a row once for each of its levels, and of each column a bin; by measurements of both
// libraries on one core, that takes as long as so many multiplications of a network.
constexpr double kPerBin = 40;
constexpr int32_t kUsualWidths[] = {256, 256};

double Columns(const DataFile& train) {
  return std::max(1.0, static_cast<double>(train.header.size()));
}

// Estimates the rows of a table of numbers and categories.
double Rows(const DataFile& train) {
  return static_cast<double>(train.bytes) / (kBytesPerValue * Columns(train));
}

double Steps(const v1::JobSpec& spec) { return std::max(1, spec.data().window()); }

EpochWork OfRows(const DataFile& train, double multiplications) {
  return {static_cast<double>(train.bytes), Rows(train), multiplications};
}

EpochWork OfMlp(const DataFile& train, const v1::MlpSpec& mlp, double steps) {
  const double values = mlp.has_numeric_embedding() ? mlp.numeric_embedding().size() : 1;
  const double inputs = Columns(train) * steps * values;
  return OfRows(train,
                std::max(1, mlp.ensemble_members()) * MlpMultiplications(inputs, mlp.hidden()));
}

// leaves: of a tree, at most. The table is read once, not in each epoch.
EpochWork OfTrees(const DataFile& train, double rounds, double leaves) {
  const auto epochs = static_cast<double>(EpochsOfRounds(static_cast<int64_t>(rounds)));
  const double levels = std::log2(std::max(2.0, leaves));
  return {static_cast<double>(train.bytes) / epochs, Rows(train),
          rounds / epochs * levels * Columns(train) * kPerBin};
}

EpochWork OfLightgbm(const DataFile& train, const v1::LightgbmSpec& trees) {
  return OfTrees(train, trees.num_iterations(), trees.num_leaves());
}

EpochWork OfXgboost(const DataFile& train, const v1::XgboostSpec& trees) {
  constexpr int kMostLevels = 16;  // more of them have few rows
  const int depth = trees.max_depth() > 0 ? std::min(trees.max_depth(), kMostLevels) : kMostLevels;
  return OfTrees(train, trees.num_boost_round() * trees.num_parallel_tree(), std::exp2(depth));
}

// An epoch solves a system with a row and a column for each row.
EpochWork OfKernel(const DataFile& train, const v1::KernelSpec& kernel) {
  const double rows = std::min<double>(Rows(train), kernel.max_rows());
  return {static_cast<double>(train.bytes), rows, rows * (rows / 2 + Columns(train))};
}

double MultiplicationsOf(const v1::CnnSpec& cnn, double size) {
  const ImageArchitecture* const known = FindImageArchitecture(cnn.architecture());
  if (known == nullptr) return CnnMultiplications(size, cnn.width(), cnn.blocks());
  constexpr double kUsualSize = 224;
  return known->multiplications * (size / kUsualSize) * (size / kUsualSize);
}

// The passes that an answer takes, counted by the pixels that they see.
double ViewsOf(const v1::CnnSpec& cnn) {
  constexpr double kCorners = 4;
  double sizes = cnn.view_scales().empty() ? 1 : 0;
  for (const double scale : cnn.view_scales()) sizes += scale * scale;
  return sizes * (cnn.mirror() ? 2 : 1) * (cnn.view_shift() > 0 ? 1 + kCorners : 1);
}

EpochWork OfImages(const v1::JobSpec& spec, const DataFile& train, const MediaLoad& media) {
  const double size = spec.data().image().size();
  // The images of an array are in the file itself.
  const double images = media.files > 0 ? static_cast<double>(media.files)
                                        : static_cast<double>(train.bytes) /
                                              (size * size * spec.data().image().channels());
  return {static_cast<double>(train.bytes), images, MultiplicationsOf(spec.model().cnn(), size),
          ViewsOf(spec.model().cnn())};
}

EpochWork OfVolumes(const v1::JobSpec& spec, const DataFile& train, const MediaLoad& media) {
  const v1::Unet3dSpec& unet = spec.model().unet3d();
  const auto& size = spec.train().patches().size();
  double voxels = 1;
  for (const int extent : size) voxels *= extent;
  // Patches of images are one slice deep (VolumeSet::PatchOf).
  const bool flat = media.images || (size.size() > 0 && size[0] == 1);
  if (flat && size.size() > 0) voxels /= size[0];
  const double volumes = static_cast<double>(media.files) / (1 + kMasksPerVolume);
  return {static_cast<double>(train.bytes), volumes * spec.train().patches().per_volume(),
          Unet3dMultiplications(voxels, /*channels=*/1, unet.base(), unet.levels(), flat ? 2 : 3),
          std::exp2(unet.mirror_size())};
}

// Counts full texts, because the number of rows is unknown; tokens of shorter texts are padding.
EpochWork OfTexts(const v1::JobSpec& spec, const DataFile& train) {
  const v1::TextEncoderSpec& text = spec.model().text();
  const double tokens = spec.data().text().max_tokens();
  const double texts = static_cast<double>(train.bytes) / (kBytesPerToken * tokens);
  return {static_cast<double>(train.bytes), texts,
          TransformerMultiplications(tokens, text.width(), text.feedforward(), text.layers(),
                                     text.attention() == "plain")};
}

}  // namespace

EpochWork EpochWorkOf(const v1::JobSpec& resolved, const DataFile& train, const MediaLoad& media) {
  // The Plan is made for the first of several trials.
  const v1::ModelSpec& model =
      resolved.trials_size() > 0 ? resolved.trials(0).model() : resolved.model();
  switch (model.architecture_case()) {
    case v1::ModelSpec::kMlp:
      return OfMlp(train, model.mlp(), Steps(resolved));
    case v1::ModelSpec::kLstm:
      return OfRows(train, LstmMultiplications(Columns(train), Steps(resolved),
                                               model.lstm().hidden(), model.lstm().layers()));
    case v1::ModelSpec::kTransformer:
      return OfRows(train, TransformerMultiplications(Steps(resolved), model.transformer().width(),
                                                      model.transformer().feedforward(),
                                                      model.transformer().layers(),
                                                      /*plain=*/true));
    case v1::ModelSpec::kLightgbm:
      return OfLightgbm(train, model.lightgbm());
    case v1::ModelSpec::kXgboost:
      return OfXgboost(train, model.xgboost());
    case v1::ModelSpec::kKernel:
      return OfKernel(train, model.kernel());
    case v1::ModelSpec::kCnn:
      return OfImages(resolved, train, media);
    case v1::ModelSpec::kUnet3D:
      return OfVolumes(resolved, train, media);
    case v1::ModelSpec::kText:
      return OfTexts(resolved, train);
    default:  // a user's own network, or one without a count here: like an MLP of the usual size
      return OfRows(train, MlpMultiplications(Columns(train) * Steps(resolved), kUsualWidths));
  }
}

}  // namespace traind
