// A fold's rows, ready to train on.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <vector>

#include "common/data/table/table.h"
#include "common/data/text/tokenizer.h"
#include "worker/data/fold_rows.h"
#include "worker/data/image_pixels.h"
#include "worker/data/media_source.h"
#include "worker/data/row_encoder.h"
#include "worker/learner/learner.h"
#include "worker/train/training_spec.h"

namespace traind {

struct FoldData {
  std::shared_ptr<const Table> table;
  FoldRows rows;
  std::unique_ptr<const RowEncoder> encoder;
  SampleShape sample;
  int outputs = 1;                             // C: classes, or targets
  std::unique_ptr<const Tokenizer> tokenizer;  // null: samples have no text
  int64_t max_tokens = 0;
  // Volumes: an epoch takes so many patches of each, by rows of their own: row r of those
  // that are encoded is of row r modulo the table's. `rows.training` names them all.
  int64_t patches = 1;
  // The images, texts or volumes of the rows of each file; null: they have none.
  std::shared_ptr<const MediaSource> media, test_media;
  std::vector<int64_t> image;  // ModelShape's
  PixelScale pixel_scale;      // of images
  const VolumeSource* volumes() const {
    return media == nullptr ? nullptr : media->volumes_source();
  }

  ModelShape shape() const;
  // All rows of the training file, encoded.
  LearnerData Encode() const;
};

// Errors: those of Table::Open, ReadNpyInt16 and SplitFold; InvalidArgument where
// spec and table disagree about the kind of target.
absl::StatusOr<FoldData> LoadFold(const std::string& state_dir, const std::string& table,
                                  const std::string& job, int fold, const TrainingSpec& spec);

}  // namespace traind
