// model.json: how to turn a row into the input of a fold's model, and the model's output into
// an answer. It lies beside the checkpoints with the model's weights. With both, a later file
// is predicted exactly as the fold's own rows were, without the training file or its cache.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "common/data/image/image_fields.h"
#include "common/data/table/feature_reader.h"
#include "common/data/table/series_input.h"
#include "common/data/volume/volume_input.h"
#include "worker/data/image_pixels.h"
#include "worker/data/lag_state.h"
#include "worker/data/row_encoder.h"
#include "worker/rank_protocol/messages.h"

namespace traind {

struct ModelFile {
  std::string job;
  int fold = 0;
  int trial = 0;  // which of the spec's trials
  uint64_t seed = 0;
  std::string table_sha256;  // of the table that the model was trained on
  std::string spec_json;     // the resolved JobSpec
  InputSchema input;
  RowEncoder::State encoder;
  std::optional<SeriesInput> series;  // of a forecast with a horizon
  std::optional<LagState> lags;       // of trees that forecast
  std::string tokenizer;              // from Tokenizer::Serialize(); empty: rows have no texts
  PixelScale pixel_scale;             // [channels] of the images; empty: rows have none
  // The format of the images. Derived from the spec on reading.
  ImageFields image;
  std::optional<VolumeInput> volume;  // none: rows are no volumes
};

// Returns the parts of the file that every model has. seed: the model's own; table: its fold's.
ModelFile ModelFileOf(const rank_protocol::Train& train, uint64_t seed, const Table& table,
                      RowEncoder::State encoder);

// Writes the file, which is durable on return. dir: the Attempt's existing folder, relative to
// the state folder. Errors: those of WriteFileDurably.
absl::Status WriteModelFile(const std::string& state_dir, const std::string& dir,
                            const ModelFile& file);

// Errors: NotFound; DataLoss says how the file is damaged; FailedPrecondition: an older engine
// wrote the file without the data that predicting images, volumes or later rows of a series needs.
absl::StatusOr<ModelFile> ReadModelFile(const std::string& state_dir, const std::string& dir);

}  // namespace traind
